#!/bin/sh
# Asks a server for a short answer of `smollm2`, again while it loads, and prints it: packaging/ask.sh [http://127.0.0.1:8000]
set -eu
curl --fail --silent --show-error --retry 60 --retry-delay 2 --retry-all-errors --header 'Content-Type: application/json' \
  --data '{"model": "smollm2", "messages": [{"role": "user", "content": "Hello!"}], "max_tokens": 8}' \
  "${1:-http://127.0.0.1:8000}/v1/chat/completions"
