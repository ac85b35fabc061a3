"""An opener, written from docs/protocol.md alone.

Reads one JSON object from standard input, says hello to the relay, opens a stream through the provider to an echo server, sends
bytes, gets them back, ends in good order, and prints a line of what it saw.
"""

import hashlib
import hmac
import json
import os
import socket
import struct
import sys
import time
import uuid
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ed25519, x25519
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from OpenSSL import SSL

HELLO, WELCOME, REFUSE, PING, PONG, CONTRACT = 0x01, 0x02, 0x03, 0x04, 0x05, 0x07
OPEN, OPENED, DATA, CREDIT, FIN, RESET = 0x10, 0x11, 0x12, 0x13, 0x14, 0x15
MAX_PLAIN = 16_360
TAG = 16


def raw(public_key):
    return public_key.public_bytes(Encoding.Raw, PublicFormat.Raw)


def u16(number):
    return struct.pack(">H", number)


def u32(number):
    return struct.pack(">I", number)


def u64(number):
    return struct.pack(">Q", number)


# --- Fields (§2) ---


def put(*fields):
    return b"".join(bytes([tag]) + u16(len(value)) + value for tag, value in fields)


def take(payload, repeated=()):
    fields = {}
    while payload:
        tag, length = payload[0], struct.unpack(">H", payload[1:3])[0]
        value, payload = payload[3 : 3 + length], payload[3 + length :]
        assert len(value) == length, "a field is cut off"
        assert tag not in fields or tag in repeated, f"field {tag} came twice"
        fields[tag] = value
    return fields


def number(value):
    return int.from_bytes(value, "big")


# --- TLS (§1) and the connection's frames (§2) ---


class Refused(Exception):
    pass


class Link:
    def __init__(self, given):
        self.given = given
        host, port = given["address"].rsplit(":", 1)
        context = SSL.Context(SSL.TLS_CLIENT_METHOD)
        context.set_min_proto_version(SSL.TLS1_3_VERSION)
        context.set_alpn_protos([b"holdfast/1"])
        # The chain is checked below, against the one certificate that may sign it.
        context.set_verify(SSL.VERIFY_NONE, None)
        self.socket = socket.create_connection((host, int(port)), timeout=10)
        self.socket.settimeout(None)
        self.tls = SSL.Connection(context, self.socket)
        self.tls.set_connect_state()
        self.tls.do_handshake()
        assert self.tls.get_alpn_proto_negotiated() == b"holdfast/1"
        self.check_chain(host)
        self.received = b""
        self.hello()

    def check_chain(self, host):
        chain = [certificate.to_cryptography() for certificate in self.tls.get_peer_cert_chain()]
        leaf, roots = chain[0], []
        for certificate in chain[1:]:
            key = certificate.public_key()
            if isinstance(key, ed25519.Ed25519PublicKey) and hashlib.sha256(raw(key)).digest() == self.network:
                roots.append(certificate)
        assert roots, "the chain does not end in the network's root"
        leaf.verify_directly_issued_by(roots[0])
        now = time.time()
        assert leaf.not_valid_before_utc.timestamp() <= now <= leaf.not_valid_after_utc.timestamp()
        names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        known = names.get_values_for_type(x509.DNSName) + [str(a) for a in names.get_values_for_type(x509.IPAddress)]
        assert host in known, f"the certificate is for {known}"
        assert "urn:holdfast:role:relay" in names.get_values_for_type(x509.UniformResourceIdentifier)

    @property
    def network(self):
        return bytes.fromhex(self.given["network"])

    def send(self, kind, stream, payload=b""):
        assert len(payload) <= 16_376
        self.tls.sendall(u16(len(payload)) + bytes([kind, 0]) + u32(stream) + payload)

    def next(self):
        """The next frame that means something here: PING is answered, unknown types are skipped."""
        while True:
            while len(self.received) < 8 or len(self.received) < 8 + number(self.received[:2]):
                self.received += self.tls.recv(65_536)
            length, kind, stream = number(self.received[:2]), self.received[2], number(self.received[4:8])
            payload, self.received = self.received[8 : 8 + length], self.received[8 + length :]
            if kind == PING:
                self.send(PONG, 0, payload)
            elif kind == REFUSE or kind == RESET:
                fields = take(payload)
                raise Refused(f"code {number(fields[1])}: {fields.get(2, b'')!r}")
            elif kind < 0x80 and kind != PONG:
                return kind, stream, payload

    def hello(self):
        given = self.given
        signing = ed25519.Ed25519PrivateKey.from_private_bytes(bytes.fromhex(given["signing_secret"]))
        self.sealing = x25519.X25519PrivateKey.from_private_bytes(bytes.fromhex(given["sealing_secret"]))
        epoch = u64(time.time_ns() // 1_000_000)
        exported = self.tls.export_keying_material(b"EXPORTER-holdfast-hello", 32, b"")
        proof = signing.sign(b"holdfast hello 1\0" + self.network + epoch + exported)
        identity = raw(signing.public_key()) + raw(self.sealing.public_key())
        self.send(
            HELLO,
            0,
            put(
                (1, b"\x01"),
                (2, bytes([given["role"]])),
                (3, given["token"].encode()),
                (4, identity),
                (5, epoch),
                (6, proof),
                (7, b"python 1"),
            ),
        )
        kind, _, payload = self.next()
        assert kind == WELCOME, kind
        self.welcome = take(payload, repeated=(13,))
        assert self.welcome[1] == b"\x01" and self.welcome[3] == epoch

    def show(self, contract):
        self.send(CONTRACT, 0, put((1, contract.encode())))


# --- The seal (§6): Noise_IK_25519_AESGCM_SHA256, from the Noise specification ---


class Cipher:
    def __init__(self, key):
        self.aead, self.count = AESGCM(key), 0

    def nonce(self):
        self.count += 1
        return bytes(4) + u64(self.count - 1)

    def seal(self, plain, associated=b""):
        return self.aead.encrypt(self.nonce(), plain, associated)

    def open(self, sealed, associated=b""):
        return self.aead.decrypt(self.nonce(), sealed, associated)


def hkdf(chaining_key, material):
    secret = hmac.digest(chaining_key, material, "sha256")
    first = hmac.digest(secret, b"\x01", "sha256")
    return first, hmac.digest(secret, first + b"\x02", "sha256")


class Initiator:
    """-> e, es, s, ss; <- e, ee, se; the responder's static key is known."""

    def __init__(self, static, responder, prologue):
        self.static, self.responder = static, x25519.X25519PublicKey.from_public_bytes(responder)
        self.hash = self.chaining_key = b"Noise_IK_25519_AESGCM_SHA256".ljust(32, b"\0")
        self.cipher = None
        self.mix_hash(prologue)
        self.mix_hash(responder)

    def mix_hash(self, data):
        self.hash = hashlib.sha256(self.hash + data).digest()

    def mix_key(self, material):
        self.chaining_key, key = hkdf(self.chaining_key, material)
        self.cipher = Cipher(key)

    def seal(self, plain):
        sealed = self.cipher.seal(plain, self.hash)
        self.mix_hash(sealed)
        return sealed

    def open(self, sealed):
        plain = self.cipher.open(sealed, self.hash)
        self.mix_hash(sealed)
        return plain

    def first(self, payload):
        self.ephemeral = x25519.X25519PrivateKey.generate()
        public = raw(self.ephemeral.public_key())
        self.mix_hash(public)
        self.mix_key(self.ephemeral.exchange(self.responder))
        static = self.seal(raw(self.static.public_key()))
        self.mix_key(self.static.exchange(self.responder))
        return public + static + self.seal(payload)

    def second(self, message):
        """The answer's payload, and what seals and opens from now on."""
        public = x25519.X25519PublicKey.from_public_bytes(message[:32])
        self.mix_hash(message[:32])
        self.mix_key(self.ephemeral.exchange(public))
        self.mix_key(self.static.exchange(public))
        payload = self.open(message[32:])
        there, back = hkdf(self.chaining_key, b"")
        return payload, Cipher(there), Cipher(back)


# --- One stream (§4, §5) ---


class Stream:
    def __init__(self, link, stream_id):
        given = link.given
        self.link, self.id = link, stream_id
        provider, contract = uuid.UUID(given["provider"]).bytes, uuid.UUID(given["contract"]).bytes
        opener = uuid.UUID(given["client"]).bytes
        prologue = b"holdfast seal 1\0" + link.network + provider + opener + contract
        noise = Initiator(link.sealing, bytes.fromhex(given["provider_key"]), prologue)
        request = put(
            (1, u64(time.time_ns() // 1_000_000)),
            (2, u64(0)),
            (4, ip_address(given["target_host"]).packed),
            (5, u16(given["target_port"])),
        )
        self.window = number(link.welcome[11])
        link.send(
            OPEN,
            stream_id,
            put(
                (1, provider),
                (2, u64(0)),
                (3, contract),
                (5, u32(10_000)),
                (6, b"\0"),
                (7, u32(self.window)),
                (8, noise.first(request)),
            ),
        )
        kind, stream, payload = link.next()
        assert (kind, stream) == (OPENED, stream_id), (kind, stream)
        opened = take(payload)
        self.credit = number(opened[1])
        answer, self.sealer, self.opener = noise.second(opened[2])
        answer = take(answer)
        if number(answer[1]) != 0:
            raise Refused(f"code {number(answer[1])}: {answer.get(2, b'')!r}")
        self.reached = str(ip_address(answer[3]))
        self.ungranted = 0
        self.ended = False

    def send(self, plain):
        """As much of it as there is credit for, in one message; what is left."""
        count = min(len(plain), MAX_PLAIN, self.credit - TAG)
        if count <= 0:
            return plain
        self.link.send(DATA, self.id, self.sealer.seal(plain[:count]))
        self.credit -= count + TAG
        return plain[count:]

    def end(self):
        self.link.send(DATA, self.id, self.sealer.seal(b""))
        self.link.send(FIN, self.id)

    def receive(self):
        """What comes next for it; nothing if that was credit or the end."""
        kind, stream, payload = self.link.next()
        assert stream == self.id, stream
        if kind == CREDIT:
            self.credit += number(payload)
        elif kind == FIN:
            assert self.ended, "the stream was cut"
            self.fin = True
        elif kind == DATA:
            plain = self.opener.open(payload)
            if plain:
                self.ungranted += len(payload)
                if self.ungranted >= self.window // 2:
                    self.link.send(CREDIT, self.id, u32(self.ungranted))
                    self.ungranted = 0
            else:
                self.ended = True
            return plain
        return b""

    fin = False


def main():
    given = json.load(sys.stdin)
    link = Link(given)
    link.show(given["contract_text"])
    for stream_id in (1, 2):
        stream = Stream(link, stream_id)
        assert stream.reached == given["target_host"], stream.reached
        data = os.urandom(2_000_000)
        left, back = data, b""
        while left or len(back) < len(data):
            before, left = left, stream.send(left)
            # Without credit, or with all of it sent, something has to come.
            if left == before:
                back += stream.receive()
        assert back == data, "other bytes came back"
        stream.end()
        while not stream.fin:
            assert stream.receive() == b""
    # And what is refused is told with its code.
    given["provider"] = str(uuid.uuid4())
    try:
        Stream(link, 3)
        raise AssertionError("a provider that does not exist took a stream")
    except Refused as refused:
        assert "code 20" in str(refused), refused
    print(f"2 streams, {2 * len(data)} bytes each way, {link.tls.get_cipher_name()}")


main()
