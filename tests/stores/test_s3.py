"""`sources.fs("s3://…")` against a server that speaks S3, on this machine."""

import gzip
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer

import ripwrap
from ripwrap import SearchError, sources, sync

KEYS = {"aws_access_key_id": "test", "aws_secret_access_key": "test", "region_name": "us-east-1"}
OBJECTS = {f"logs/{number:03}.gz": gzip.compress(f"line\nneedle {number}\n".encode()) for number in range(60)}


@pytest.fixture(scope="module")
def options() -> Iterator[dict[str, Any]]:
    """Start a server with a bucket, and return the storage options."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    client = boto3.client("s3", endpoint_url=endpoint, **KEYS)
    client.create_bucket(Bucket="bucket")
    for key, content in OBJECTS.items():
        client.put_object(Bucket="bucket", Key=key, Body=content)
    yield {"key": "test", "secret": "test", "endpoint_url": endpoint, "use_listings_cache": False}
    server.stop()


@pytest.mark.anyio
async def test_compressed_objects_of_a_bucket_are_searched(options: dict[str, Any]) -> None:
    source = sources.fs("s3://bucket/logs/*.gz", inside="gz", workers=32, storage_options=options)
    found = [(match.path, match.text) async for match in ripwrap.search_in("needle", source)]
    assert found == [(f"s3://bucket/logs/{number:03}.gz!/{number:03}", f"needle {number}") for number in range(60)]
    assert source.bytes_fetched == sum(map(len, OBJECTS.values()))
    assert source.errors == []


def test_cap_holds_for_a_bucket(options: dict[str, Any]) -> None:
    source = sources.fs("s3://bucket/logs/*.gz", inside="gz", max_bytes=1000, storage_options=options)
    result = sync.grep_in("needle", source)
    assert 0 < result.files_matched < 60
    assert 1000 - 100 < source.bytes_fetched <= 1000
    assert len(result.errors) == 1


def test_missing_object_is_data_and_missing_bucket_an_error(options: dict[str, Any]) -> None:
    source = sources.fs(["s3://bucket/gone", "s3://bucket/logs/001.gz"], inside="gz", storage_options=options)
    assert sync.grep_in("needle", source).total_matches == 1
    assert [(error.path, error.kind) for error in source.errors] == [("s3://bucket/gone", "missing")]
    with pytest.raises((SearchError, FileNotFoundError)):
        list(sync.search_in("x", sources.fs("s3://no-such-bucket/*", storage_options=options)))
