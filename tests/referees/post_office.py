"""A mail server with a certificate of its own, for letters of the gateway.

    post_office.py FOLDER

It writes FOLDER/ca.pem, then one line `{"tls": port, "starttls": port}`, then a
line for every letter that was handed in. It wants a user and a password, and on
the second port nothing but STARTTLS before them. While FOLDER/hold exists, it
takes a letter and never says so.
"""

import asyncio
import datetime
import email
import ipaddress
import json
import os
import ssl
import sys
import warnings

from aiosmtpd.smtp import SMTP, AuthResult
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

warnings.simplefilter("ignore")
FOLDER = sys.argv[1]
PEM = serialization.Encoding.PEM


def say(what):
    print(json.dumps(what), flush=True)


def path(name):
    return os.path.join(FOLDER, name)


def certificate(name, key, issuer_name, issuer_key, authority):
    now = datetime.datetime.now(datetime.timezone.utc)
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer_name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    if authority:
        usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
        built = built.add_extension(usage, critical=True)
    else:
        built = built.add_extension(x509.SubjectAlternativeName(names), critical=False)
        purpose = x509.ExtendedKeyUsage([x509.oid.ExtendedKeyUsageOID.SERVER_AUTH])
        built = built.add_extension(purpose, critical=False)
    return built.sign(issuer_key, hashes.SHA256())


def context():
    def named(text):
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])

    authority, own = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    root = certificate(named("Yard Test"), authority, named("Yard Test"), authority, True)
    leaf = certificate(named("localhost"), own, named("Yard Test"), authority, False)
    secret = own.private_bytes(PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    for name, data in (("leaf.pem", leaf.public_bytes(PEM)), ("leaf.key", secret), ("ca.pem", root.public_bytes(PEM))):
        with open(path(name), "wb") as file:
            file.write(data)
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(path("leaf.pem"), path("leaf.key"))
    return made


def check(server, session, envelope, mechanism, data):
    right = (data.login, data.password) == (b"yard", b"canary-password")
    return AuthResult(success=right)


class Desk:
    def __init__(self, way):
        self.way = way

    async def handle_DATA(self, server, session, envelope):
        letter = email.message_from_bytes(envelope.content)
        held = os.path.exists(path("hold"))
        say({
            "way": self.way, "held": held, "encrypted": session.ssl is not None or self.way == "tls",
            "from": envelope.mail_from, "to": envelope.rcpt_tos, "id": letter["Message-ID"],
            "subject": letter["Subject"], "text": letter.get_payload(decode=True).decode().strip(),
        })
        while os.path.exists(path("hold")):
            await asyncio.sleep(0.05)
        return "250 taken"


async def main():
    loop, tls = asyncio.get_running_loop(), context()
    # With TLS from the first byte the protocol itself sees none.
    inside = {"authenticator": check, "auth_required": True, "auth_require_tls": False}
    after = {"authenticator": check, "auth_required": True, "tls_context": tls, "require_starttls": True}
    offices = {
        "tls": await loop.create_server(lambda: SMTP(Desk("tls"), **inside), "127.0.0.1", 0, ssl=tls),
        "starttls": await loop.create_server(lambda: SMTP(Desk("starttls"), **after), "127.0.0.1", 0),
    }
    say({way: office.sockets[0].getsockname()[1] for way, office in offices.items()})
    # It ends with who started it.
    await loop.run_in_executor(None, sys.stdin.read)
    os._exit(0)


asyncio.run(main())
