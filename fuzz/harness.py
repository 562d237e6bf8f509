"""Start libFuzzer for a target."""

import hashlib
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import atheris

TESTS = Path(__file__).parent.parent / "tests"
sys.path.append(str(TESTS))  # for modules that targets and tests share


def fuzz(test: Callable[[bytes], None], seeds: Iterable[bytes], words: Iterable[bytes] = ()) -> None:
    """Run a target with libFuzzer's arguments: `CORPUS -max_total_time=60` to fuzz, `FINDING` to run one input again.

    Args:
        test: Function of an input; any exception that it raises is a finding.
        seeds: First inputs of the corpus.
        words: Byte strings that libFuzzer inserts into inputs.
    """
    arguments = list(sys.argv)
    for corpus in (Path(argument) for argument in arguments[1:] if Path(argument).is_dir()):
        for seed in seeds:
            (corpus / hashlib.sha256(seed).hexdigest()).write_bytes(seed)
        dictionary = corpus.with_suffix(".dict")
        dictionary.write_text("".join(f'"{_escaped(word)}"\n' for word in words))
        arguments.append(f"-dict={dictionary}")
    atheris.Setup(arguments, test)
    atheris.Fuzz()


def _escaped(word: bytes) -> str:
    return "".join(f"\\x{byte:02x}" for byte in word)
