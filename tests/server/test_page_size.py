"""The page is one answer, and small for those who take gzip."""

import httpx
from page_driver import Page


def test_the_page_comes_by_gzip(browser, server):
    Page(browser, server.url)
    sizes = browser.execute_script("const [page] = performance.getEntriesByType('navigation'); return [page.encodedBodySize, page.decodedBodySize]")
    plain, packed = (httpx.get(server.url, headers={"Accept-Encoding": coding}) for coding in ("identity", "gzip"))
    assert plain.content == packed.content and "Content-Encoding" not in plain.headers
    assert sizes == [int(packed.headers["Content-Length"]), len(plain.content)]
    assert sizes[0] < sizes[1] / 2
    loaded = browser.execute_script("return performance.getEntriesByType('resource').map((each) => new URL(each.name).pathname)")
    assert set(loaded) <= {"/v1/models"}
