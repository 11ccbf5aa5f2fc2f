"""A certificate for localhost that has signed itself, as files for a server and as what a client trusts."""

import ssl
import subprocess


class Certificate:
    def __init__(self, folder):
        self.file, self.key = folder / "certificate.pem", folder / "key.pem"
        self.renew()

    def renew(self):
        """Another key, in the same files."""
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                        "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", self.key, "-out", self.file],
                       check=True, capture_output=True)

    def flags(self):
        """Those of `pagoda serve`, with underscores."""
        return {"ssl_certfile": self.file, "ssl_keyfile": self.key}

    def trusted(self):
        """The context of a client that trusts this certificate and no other."""
        return ssl.create_default_context(cafile=self.file)
