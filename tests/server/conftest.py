import pathlib
import sys

import httpx
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from certificate import Certificate  # noqa: E402
from fake_server import FakeServer  # noqa: E402
from page_driver import Page, open_browser, problems_of  # noqa: E402
from pagoda_server import PagodaServer  # noqa: E402
from scripted_server import ScriptedServer  # noqa: E402
from waiting import HANGS_AFTER_S  # noqa: E402


@pytest.fixture(scope="module")
def server():
    """A server as users get it, at full speed."""
    fake = FakeServer(max_queue=1024)
    yield fake
    assert fake.is_running()
    fake.close()


@pytest.fixture(scope="module", params=["http", "https", "unix"])
def reached(request, tmp_path_factory):
    """A server's URL by each way there is to it, and the client of httpx that goes this way."""
    folder = tmp_path_factory.mktemp(request.param)
    flags, url, how = {}, None, {}
    if request.param == "https":
        certificate = Certificate(folder)
        flags, how = {"certificate": certificate}, {"verify": certificate.trusted()}
    if request.param == "unix":
        path = str(folder / "socket")
        flags, url, how = {"uds": path}, "http://localhost", {"transport": httpx.HTTPTransport(uds=path)}
    fake = FakeServer(**flags)
    with httpx.Client(**how, timeout=HANGS_AFTER_S, follow_redirects=True) as client:
        yield url or fake.url, client
    fake.close()


@pytest.fixture(scope="module")
def default_model():
    """A server of the default model, as `pagoda pull smollm2` has left it."""
    served = PagodaServer("smollm2", max_model_len=2048, max_num_seqs=64)
    yield served
    assert served.is_running()
    served.close()


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    driver = open_browser(tmp_path_factory.mktemp("profile"))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def page(server, chromium):
    """A page for a file's tests of what texts become on it."""
    yield Page(chromium, server.url)
    assert problems_of(chromium) == []


# A test may have taken either away.
FORGET = """
try { localStorage.clear(); } catch {}
try { indexedDB.deleteDatabase('pagoda.chats'); } catch {}
"""


@pytest.fixture
def browser(chromium):
    """A new tab, and at the end no other and nothing kept."""
    home = chromium.current_window_handle
    chromium.switch_to.new_window("tab")
    yield chromium
    problems = problems_of(chromium)
    for tab in set(chromium.window_handles) - {home}:
        chromium.switch_to.window(tab)
        chromium.execute_script(FORGET)
        chromium.close()
    chromium.switch_to.window(home)
    assert problems == []


@pytest.fixture
def scripted(server):
    """The page over a server that answers as the test says."""
    script = ScriptedServer(server.url)
    yield script
    script.close()
