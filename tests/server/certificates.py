"""Certificates for tests: an authority, server certificates for loopback, client
certificates."""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
_FAR = timedelta(days=36_500)


class Files(NamedTuple):
    """A certificate and its key, in files."""

    certificate: Path
    key: Path


class Authority:
    """Signs certificates; `certificate` is the file with its own certificate."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named(name)
        key_id = x509.SubjectKeyIdentifier.from_public_key(self._key.public_key())
        usage = x509.KeyUsage(
            digital_signature=True, key_cert_sign=True, crl_sign=True, content_commitment=False, key_encipherment=False,
            data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
        )  # fmt: skip
        builder = _builder(self._name, self._name, self._key).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        made = (
            builder.add_extension(usage, critical=True)
            .add_extension(key_id, critical=False)
            .sign(self._key, hashes.SHA256())
        )
        self.certificate = folder / f"{name}.pem"
        self.certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))

    def server(self, name: str = "server", password: str = "") -> Files:
        """Creates a certificate for 127.0.0.1, ::1 and localhost."""
        names: list[x509.GeneralName] = [
            x509.IPAddress(ipaddress.ip_address(address)) for address in ("127.0.0.1", "::1")
        ]
        return self._made(
            name,
            ExtendedKeyUsageOID.SERVER_AUTH,
            x509.SubjectAlternativeName([*names, x509.DNSName("localhost")]),
            password,
        )

    def client(self, name: str = "client") -> Files:
        """Creates a client certificate."""
        return self._made(
            name,
            ExtendedKeyUsageOID.CLIENT_AUTH,
            x509.SubjectAlternativeName([x509.DNSName(name)]),
            "",
        )

    def _made(
        self,
        name: str,
        use: x509.ObjectIdentifier,
        names: x509.SubjectAlternativeName,
        password: str,
    ) -> Files:
        key = ec.generate_private_key(ec.SECP256R1())
        authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = (
            _builder(_named(name), self._name, key)
            .add_extension(names, critical=False)
            .add_extension(authority, critical=False)
        )
        made = builder.add_extension(x509.ExtendedKeyUsage([use]), critical=False).sign(
            self._key, hashes.SHA256()
        )
        found = Files(self._folder / f"{name}.pem", self._folder / f"{name}.key")
        found.certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
        _write_key(found.key, key, password)
        return found


def encrypted(key: Path, copy: Path, password: str) -> None:
    """Writes an encrypted copy of a key."""
    found = serialization.load_pem_private_key(key.read_bytes(), None)
    assert isinstance(found, ec.EllipticCurvePrivateKey)
    _write_key(copy, found, password)


def _write_key(file: Path, key: ec.EllipticCurvePrivateKey, password: str) -> None:
    encryption = (
        serialization.BestAvailableEncryption(password.encode())
        if password
        else serialization.NoEncryption()
    )
    file.touch(0o600)
    file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)
    )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
    )
    return (
        builder.serial_number(x509.random_serial_number())
        .not_valid_before(_LONG_AGO)
        .not_valid_after(_LONG_AGO + _FAR)
    )
