"""Work through a proxy by httpx. Arguments: proxy host:port, user name, password, http site, https site."""

import asyncio
import sys

import httpx

proxy, user, password, site, secure = sys.argv[1:]


async def work(scheme):
    url = f"{scheme}://{user}:{password}@{proxy}"
    async with httpx.AsyncClient(proxy=url, verify=False, trust_env=False, timeout=30) as client:
        pages = [client.get(f"{base}/{number}.svg") for number in range(25) for base in (site, secure)]
        for answer in await asyncio.gather(*pages):
            assert answer.status_code == 200 and answer.text.startswith("<svg"), (scheme, answer)
        body = bytes(range(256)) * 4096
        answer = await client.post(f"{site}/echo", content=body)
        assert answer.content == body, scheme
        async with client.stream("GET", f"{site}/chunked") as answer:
            assert sum([len(part) async for part in answer.aiter_bytes()]) == 1_000_000, scheme


for scheme in ("http", "socks5h"):
    asyncio.run(work(scheme))

try:
    httpx.get(f"{secure}/0.svg", proxy=f"http://{user}:wrong@{proxy}", verify=False, trust_env=False)
    raise AssertionError("a wrong password is let in")
except httpx.ProxyError as error:
    assert "407" in str(error), error
