"""`pagoda` from a shell."""

import os
import pathlib
import shutil
import subprocess

PAGODA = os.environ["PAGODA_BINARY"]
DATA = pathlib.Path(os.environ["PAGODA_SOURCE_DIR"]) / "tests/golden/data"
TINY = DATA / "tiny-llama"
HANGS_AFTER_S = 600  # the longest takes less than a tenth of that on two quiet cores


def tiny_with_template(folder, template):
    """A copy of the tiny model in `folder`, with another chat template."""
    shutil.copytree(TINY, folder)
    (folder / "chat_template.jinja").write_text(template)
    return folder


def pagoda(*args, code=0, stdin="", **environment):
    """What it said, with `stdin` piped in. It ends with `code`, and where that is not 0 with one line of why."""
    done = subprocess.run([PAGODA, *map(str, args)], input=stdin, capture_output=True, text=True, timeout=HANGS_AFTER_S,
                          check=False, env={**os.environ, **environment})
    assert done.returncode == code, done.stderr
    if code:
        assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    return done
