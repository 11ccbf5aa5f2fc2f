import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from fake_server import FakeServer  # noqa: E402


@pytest.fixture(scope="module")
def server():
    """A server as users get it, at full speed."""
    fake = FakeServer()
    yield fake
    assert fake.is_running()
    fake.close()
