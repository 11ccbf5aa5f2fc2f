"""The first few thousand requests of tests/server/soak.py."""

import argparse

import soak
from pagoda_server import PagodaServer


def test_nothing_is_left_of_requests():
    server = PagodaServer(max_queue=4096, kv_cache_memory_bytes=soak.KV_BYTES)
    figures = soak.soak(server, argparse.Namespace(requests=3000, vocabulary=500, concurrency=48, seed=11))
    server.close()
    assert figures["ok"], figures
