import asyncio
import os
import pathlib
import sys

import pytest

# Nothing here may ask another server than the one under test: these clients would fetch prices and send traces.
os.environ |= {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "OPENAI_AGENTS_DISABLE_TRACING": "1",
               "LANGSMITH_TRACING": "false", "HF_HUB_OFFLINE": "1"}
for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE"):
    os.environ.pop(name, None)

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "server"))
from fake_server import FakeServer  # noqa: E402
from pagoda_server import PagodaServer  # noqa: E402


@pytest.fixture(scope="module")
def served():
    """`pagoda serve` over the small checkpoint, whose weights are random: forms alone can be asked of its answers."""
    server = PagodaServer()
    yield server
    assert server.is_running()
    server.close()


@pytest.fixture(scope="module")
def base_url(served):
    return served.url + "/v1"


@pytest.fixture(scope="module")
def fake():
    """The server over a fake model, which obeys the last line of its prompt: see orders.py."""
    server = FakeServer(max_model_len=16384)
    yield server
    assert server.is_running()
    server.close()


@pytest.fixture(scope="module")
def thinking():
    """The same over a model whose answers may hold thoughts, in <think>."""
    server = FakeServer(thinks=True)
    yield server
    assert server.is_running()
    server.close()


@pytest.fixture(scope="module")
def run():
    """Runs a coroutine to its end, all of a file's in one loop: clients keep connections, which belong to a loop."""
    with asyncio.Runner() as runner:
        yield runner.run
