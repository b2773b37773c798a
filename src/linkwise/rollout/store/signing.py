"""Keys that sign the decision log: Ed25519, through the package cryptography."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from linkwise.errors import InputError
from linkwise.rollout.store.decisions import Sign

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

__all__ = ["PublicKeys", "is_signed_by", "read_private_key", "read_public_keys"]

_INSTALL = "signing needs the package cryptography: pip install 'linkwise[sign]'"
_MAKE = "make one with: openssl genpkey -algorithm ed25519 -out rollout.key"
_MOST_KEY_BYTES = 16_384

PublicKeys = Mapping[str, "Ed25519PublicKey"]
"""Keys by the name of the signer."""


def read_private_key(path: Path) -> Sign:
    """Return the key of a file in PEM.

    Parameters
    ----------
    path
        Of a private key of Ed25519 without a passphrase.

    Raises
    ------
    InputError
        When there is none, or the package is missing.
    """
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key
    except ImportError:
        raise InputError(_INSTALL) from None
    try:
        key = load_pem_private_key(_bytes_of(path), password=None)
    except (ValueError, TypeError):
        raise InputError(f"{path}: is no private key in PEM without a passphrase; {_MAKE}") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise InputError(f"{path}: is a key of another kind than Ed25519; {_MAKE}")
    return Sign(signer=_name_of(key.public_key()), sign=key.sign)


def read_public_keys(paths: Iterable[Path]) -> PublicKeys:
    """Return the keys of files in PEM, by the name of their signer.

    Parameters
    ----------
    paths
        Each of a public key of Ed25519.

    Raises
    ------
    InputError
        When one is none, or the package is missing.
    """
    return {_name_of(key): key for key in map(_public_key, paths)}


def _public_key(path: Path) -> Ed25519PublicKey:
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
        from cryptography.hazmat.primitives.serialization import load_pem_public_key
    except ImportError:
        raise InputError(_INSTALL) from None
    try:
        key = load_pem_public_key(_bytes_of(path))
    except ValueError:
        raise InputError(
            f"{path}: is no public key in PEM; make one of the private key: openssl pkey -in KEY -pubout"
        ) from None
    if not isinstance(key, Ed25519PublicKey):
        raise InputError(f"{path}: is a key of another kind than Ed25519; give the one that signs the log")
    return key


def is_signed_by(key: Ed25519PublicKey, *, text: str, signature: str) -> bool:
    """Return whether a signature is that of a key over a text.

    Parameters
    ----------
    key
        The public key.
    text, signature
        Of an entry.
    """
    from cryptography.exceptions import InvalidSignature

    try:
        key.verify(bytes.fromhex(signature), text.encode("utf-8", "surrogateescape"))
    except (InvalidSignature, ValueError):
        return False
    return True


def _bytes_of(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_MOST_KEY_BYTES)


def _name_of(key: Ed25519PublicKey) -> str:
    return "ed25519:" + hashlib.sha256(key.public_bytes_raw()).hexdigest()[:16]
