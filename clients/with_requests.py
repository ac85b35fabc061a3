"""Work through a proxy by requests. Arguments: proxy host:port, user name, password, http site, https site."""

import sys

import requests

proxy, user, password, site, secure = sys.argv[1:]

for scheme in ("http", "socks5h"):
    with requests.Session() as session:
        session.trust_env = False
        session.verify = False
        session.proxies = dict.fromkeys(("http", "https"), f"{scheme}://{user}:{password}@{proxy}")
        for number in range(20):
            assert session.get(f"{site}/{number}.svg").text.startswith("<svg"), (scheme, number)
        body = bytes(range(256)) * 4096
        assert session.post(f"{site}/echo", data=body).content == body, scheme
        # A generator is sent in chunks.
        parts = (body[at : at + 10_000] for at in range(0, len(body), 10_000))
        assert session.post(f"{site}/echo", data=parts).content == body, scheme
        assert len(session.get(f"{site}/chunked").content) == 1_000_000, scheme
        assert session.head(f"{site}/0.svg").headers["content-type"] == "image/svg+xml"
        for number in range(5):
            assert session.get(f"{secure}/{number}.svg").text.startswith("<svg"), (scheme, number)

session = requests.Session()
session.trust_env = False
session.proxies = {"http": f"http://{user}:wrong@{proxy}"}
refused = session.get(f"{site}/0.svg")
assert (refused.status_code, refused.headers["x-proxy-error"]) == (407, "login_failed"), refused.headers
session.proxies = {"http": f"http://{user}-country-fr:{password}@{proxy}"}
refused = session.get(f"{site}/0.svg")
assert (refused.status_code, refused.headers["x-proxy-error"]) == (503, "no_provider"), refused.headers
