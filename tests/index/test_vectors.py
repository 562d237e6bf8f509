"""Vectors: normalisation, storage as bytes, and exact and approximate search."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("numpy")
pytest.importorskip("usearch")

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ripwrap.index.embeddings import vectors
from ripwrap.index.embeddings.vectors import Approximate, Rows, find_nearest, pack, unpack

pytestmark = [pytest.mark.extra, pytest.mark.slow]

RANDOM = np.random.default_rng(9)


def some(count: int, dimension: int = 16) -> vectors.Matrix:
    return vectors.normalise(RANDOM.standard_normal((count, dimension)))


# Answers of embedders


@pytest.mark.parametrize("answer", [[[3, 4], [0, 2]], np.array([[3.0, 4.0], [0.0, 2.0]], "f2"), ((3.0, 4), (0, 2))])
def test_embedder_answer_becomes_normalised_float32_rows(answer: Any) -> None:
    assert np.allclose(vectors.to_matrix(answer, 2), np.array([[0.6, 0.8], [0, 1]]))
    assert vectors.to_matrix(answer, 2).dtype == np.float32


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ([[1, 2]], "1 vector for 2 texts"),
        ([[1, 2], [3]], "different lengths"),
        ([[1, 2], [3, float("nan")]], "NaN"),
        ([[1, 2], [3, float("-inf")]], "NaN or infinity"),
        ([["1", "2"], ["3", "4"]], "not a list of vectors"),
        ([[True, False], [True, True]], "not a list of vectors"),
        ([[], []], "0 numbers"),
        ([1, 2], "not a list of vectors"),
        (None, "not a list of vectors"),
        ("junk", "not a list of vectors"),
        ({"a": 1}, "not a list of vectors"),
        ([[1, 2], None], "different lengths|no list"),
        ([[[1, 2]], [[1, 2]]], "not a list of vectors"),
    ],
)
def test_answer_that_is_not_a_matrix_raises_with_the_reason(answer: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        vectors.to_matrix(answer, 2)


@given(st.lists(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=3, max_size=3), min_size=1))
def test_finite_rows_are_normalised_to_length_one_or_zero(rows: list[list[float]]) -> None:
    found = vectors.to_matrix(rows, len(rows))
    lengths = np.linalg.norm(found.astype(np.float64), axis=1)
    assert np.all((abs(lengths - 1) < 1e-6) | (lengths == 0))
    assert [not any(row) for row in rows] == (lengths == 0).tolist()


# Storage


def test_packed_rows_are_little_endian_half_floats() -> None:
    rows = some(50)
    blobs = pack(rows)
    assert {len(blob) for blob in blobs} == {32}
    assert np.allclose(unpack(blobs, 16), rows, atol=1e-3)
    assert pack(np.array([[1.0, -2.0]])) == [b"\x00\x3c\x00\xc0"]
    assert pack(np.array([[1.0, -2.0]], ">f4")) == [b"\x00\x3c\x00\xc0"]


def test_empty_matrix_is_packed_unpacked_and_searched() -> None:
    assert pack(np.empty((0, 4), np.float32)) == []
    assert unpack([], 4).shape == (0, 4)
    assert find_nearest(unpack([], 4), np.ones(4, np.float32), 5)[0].tolist() == []


@pytest.mark.parametrize("damaged", [b"", b"\0" * 7, b"\0" * 16])
def test_damaged_row_raises_with_its_position(damaged: bytes) -> None:
    with pytest.raises(ValueError, match=f"vector 1 has {len(damaged)} bytes instead of 8"):
        unpack([b"\0" * 8, damaged, b"\0" * 8], 4)


def test_widen_equals_numpy_for_every_half_float() -> None:
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16).reshape(-1, 4)
    assert vectors.widen(every).tobytes() == every.astype(np.float32).tobytes()
    assert vectors.widen(every[::2, ::-1]).tobytes() == every[::2, ::-1].astype(np.float32).tobytes()


# Exact search


@pytest.mark.parametrize("kind", [np.float16, np.float32])
@pytest.mark.parametrize("k", [1, 10, 4999, 5000, 9000])
def test_nearest_rows_equal_the_first_of_a_full_sort(k: int, kind: Any) -> None:
    rows, query = some(5000).astype(kind), some(1)[0]
    scores = rows.astype(np.float64) @ query
    numbers, found = find_nearest(rows, query, k)
    assert len(numbers) == min(k, 5000)
    assert np.allclose(np.sort(found), np.sort(scores)[-len(numbers) :], atol=1e-8)
    assert np.allclose(scores[numbers], found, atol=1e-8)
    assert (np.diff(numbers) > 0).all()


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0]), max_size=40), st.integers(0, 12), st.integers(1, 7))
def test_nearest_includes_all_ties_for_any_block_size(values: list[float], k: int, block: int) -> None:
    rows = np.array(values, np.float16)[:, None]
    numbers, scores = find_nearest(rows, np.ones(1, np.float32), k, block=block)
    last = sorted(values, reverse=True)[:k][-1:]
    expected = [number for number, value in enumerate(values) if last and value >= last[0]]
    assert numbers.tolist() == expected
    assert scores.tolist() == [values[number] for number in expected]


def test_mean_is_subtracted_before_a_query_is_compared_with_many_rows() -> None:
    """The mean does not depend on the order of additions and removals."""
    query = vectors.normalise(np.ones((1, 16)))[0]
    every = {bytes([number]): blob for number, blob in enumerate(pack(some(150, 16)))}
    kept = {name: blob for name, blob in every.items() if name[0] >= 30}
    changed, fresh = Rows(16), Rows(16)
    changed.add(every)
    for name in every.keys() - kept.keys():
        changed.remove(name)
    fresh.add(dict(reversed(kept.items())))
    centred = changed.centre(query)
    assert centred.tolist() == fresh.centre(query).tolist()
    mean = unpack(list(kept.values()), 16).astype(np.float64).mean(axis=0)
    assert np.allclose(centred, vectors.normalise((query - mean)[None])[0], atol=1e-6)
    few = Rows(16)
    few.add(dict(list(kept.items())[:99]))
    assert few.centre(query).tolist() == query.tolist()


@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_equal_rows_have_equal_scores_at_any_position(kind: Any) -> None:
    rows = some(1003, 256).astype(kind)
    rows[::17] = rows[5]
    numbers, found = find_nearest(rows, some(1, 256)[0] * 0.1 + rows[5].astype(np.float32), 10)
    assert set(numbers.tolist()) == {5, *range(0, 1003, 17)}
    assert len(set(found.tolist())) == 1


def stored(rows: Any) -> dict[bytes, bytes]:
    """Return packed rows by key; the key of a row is its number as bytes."""
    return {number.to_bytes(16): blob for number, blob in enumerate(pack(rows))}


@pytest.mark.parametrize("kept", [vectors.MAX_FLOAT32_BYTES, 0])  # float32, and float16
def test_added_and_removed_rows_are_searched_like_rebuilt_ones(kept: int) -> None:
    every = stored(some(300))
    new, names = Rows(16, max_float32_bytes=kept), list(every)
    new.add({name: every[name] for name in names[200:]})
    for start in range(0, 200, 20):
        new.add({name: every[name] for name in names[start : start + 20]})
        for name in names[start + 200 : start + 210]:
            new.remove(name)
    left = [name for name in names if name in new]
    assert len(left) == len(new) == 250
    query = some(1)[0]
    at_once = Rows(16, max_float32_bytes=kept)
    at_once.add({name: every[name] for name in left})
    assert sorted(new.search(query, 20)) == sorted(at_once.search(query, 20))
    new.remove(b"nobody's")
    for name in left:
        new.remove(name)
    assert (len(new), new.search(query, 20)) == (0, [])


def test_many_rows_are_stored_as_half_floats() -> None:
    every = stored(some(400))
    names, query = list(every), some(1)[0]
    rows = Rows(16, max_float32_bytes=16 * 4 * 300)
    rows.add({name: every[name] for name in names[:200]})
    before = rows.search(query, 300)
    assert rows._matrix.dtype == np.float32
    rows.add({name: every[name] for name in names[200:]})
    assert rows._matrix.dtype == np.float16
    assert set(before) <= set(rows.search(query, 400))


# Approximate search with usearch


def crowd(count: int) -> tuple[vectors.Ids, vectors.Halves]:
    """Return rows in clusters, like vectors of real texts."""
    centres = RANDOM.standard_normal((50, 32))
    rows = vectors.normalise(centres[np.arange(count) % 50] + RANDOM.standard_normal((count, 32)))
    return np.arange(count, dtype=np.int64) * 3 + 5, rows.astype(np.float16)


def exact(ids: vectors.Ids, rows: vectors.Halves, query: Any, k: int) -> dict[int, float]:
    numbers, cosines = find_nearest(rows, query, k)
    return dict(zip(ids[numbers].tolist(), cosines.tolist(), strict=True))


def recall(approximate: Any, ids: vectors.Ids, rows: vectors.Halves, k: int = 10) -> float:
    queries = rows[:: max(1, len(rows) // 40)]
    both = [{i for i, _ in approximate.search(q, k)} & exact(ids, rows, q, k).keys() for q in queries]
    return sum(map(len, both)) / (k * len(queries))


def test_approximate_search_has_high_recall_and_exact_cosines() -> None:
    ids, rows = crowd(3000)
    many = Approximate(ids, rows)
    assert recall(many, ids, rows) > 0.95
    every = exact(ids, rows, rows[7], 3000)
    assert all(cosine == every[found] for found, cosine in many.search(rows[7], 10))
    assert vectors.MAX_EXACT_VECTORS == 200_000


def test_graph_follows_added_and_removed_rows(tmp_path: Path) -> None:
    ids, rows = crowd(3000)
    file = tmp_path / "vectors.usearch"
    graph = Approximate(ids[:2900], rows[:2900], file=file)
    graph.follow(ids[100:], rows[100:])
    assert recall(graph, ids[100:], rows[100:]) > 0.95
    again = Approximate(ids[100:], rows[100:], file=file)
    assert recall(again, ids[100:], rows[100:]) > 0.95
    assert {found for found, _ in again.search(rows[0], 500)} <= set(ids[100:].tolist())
    again.follow(ids[:10], rows[:10])  # most rows were removed, so the graph is rebuilt
    assert {found for found, _ in again.search(rows[0], 500)} == set(ids[:10].tolist())
    again.follow(ids[:0], rows[:0])
    assert again.search(rows[0], 5) == []
    assert [path.name for path in tmp_path.iterdir()] == ["vectors.usearch"]


def test_row_order_does_not_change_the_graph(tmp_path: Path) -> None:
    ids, rows = crowd(500)
    file = tmp_path / "vectors.usearch"
    before = Approximate(ids, rows, file=file).search(rows[3], 5)
    stamp = file.stat().st_mtime_ns
    shuffled = RANDOM.permutation(500)
    assert Approximate(ids[shuffled], rows[shuffled], file=file).search(rows[3], 5) == before
    assert file.stat().st_mtime_ns == stamp  # without new rows, the file is not written


@pytest.mark.parametrize("broken", [b"", b"junk", b"\0" * 5000, None])
def test_damaged_graph_file_is_rebuilt(broken: bytes | None, tmp_path: Path) -> None:
    ids, rows = crowd(500)
    file = tmp_path / "vectors.usearch"
    expected = Approximate(ids, rows, file=file).search(rows[3], 5)
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2] if broken is None else broken)
    assert Approximate(ids, rows, file=file).search(rows[3], 5) == expected
    assert file.stat().st_size > 5000


def test_graph_file_of_another_model_is_rebuilt(tmp_path: Path) -> None:
    ids, rows = crowd(500)
    file = tmp_path / "vectors.usearch"
    Approximate(ids, some(500, 48), file=file)
    assert recall(Approximate(ids, rows, file=file), ids, rows) > 0.95
