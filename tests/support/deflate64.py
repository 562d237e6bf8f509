"""Text compressed with Deflate64, which the standard library cannot write or read."""

import importlib.util

import pytest


def deflated(content: bytes) -> bytes:
    """Return the content compressed with Deflate64; skip the test if no package can do that."""
    if importlib.util.find_spec("inflate64") is None:
        pytest.skip("inflate64 is not installed: it has no wheels for Python 3.15")
    import inflate64

    deflater = inflate64.Deflater()
    return bytes(deflater.deflate(content) + deflater.flush())
