"""Makes certificates for a Dask cluster, and the Dask configuration that uses them.

    python cluster/certificates.py FOLDER [--days 90]
    export DASK_CONFIG=FOLDER

Do the second line wherever a scheduler, a worker or dfeas starts: they then talk over TLS 1.3 only, each shows a certificate of
this set, and whoever has none is refused. The certificate of a client cannot be used to pose as the scheduler or a worker.
For other machines copy the folder to the same path; one that only runs dfeas needs ca.pem, client.pem, client-key.pem and the
two YAML files. The key of the authority is not kept: for more certificates make a new set. Needs pip install cryptography.
"""

import datetime
import os
from pathlib import Path

import click
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

SETTINGS = Path(__file__).with_name("dask.yaml")
BOTH = (ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH)
PURPOSES = {"scheduler": BOTH, "worker": BOTH, "client": (ExtendedKeyUsageOID.CLIENT_AUTH,)}


def write(path: Path, content: bytes) -> None:
    """A new file that only its owner reads."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)


def name(role: str) -> x509.Name:
    """Of a certificate: Dask looks at who signed it, not at names."""
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"dfeas {role}")])


def usage(authority: bool) -> x509.KeyUsage:
    """An authority signs certificates, the others sign handshakes."""
    return x509.KeyUsage(
        digital_signature=not authority,
        key_cert_sign=authority,
        crl_sign=authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def draft(role: str, key: ec.EllipticCurvePublicKey, signer: ec.EllipticCurvePublicKey, days: int) -> x509.CertificateBuilder:
    """What all certificates of a set have in common."""
    now = datetime.datetime.now(datetime.UTC)
    authority = role == "authority"
    return (
        x509.CertificateBuilder()
        .subject_name(name(role))
        .issuer_name(name("authority"))
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))  # clocks differ
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=authority, path_length=0 if authority else None), critical=True)
        .add_extension(usage(authority), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer), critical=False)
    )


def configuration(folder: Path) -> bytes:
    """The Dask configuration that makes everything use the certificates in a folder."""
    files = {role: {"cert": str(folder / f"{role}.pem"), "key": str(folder / f"{role}-key.pem")} for role in PURPOSES}
    tls = {"ca-file": str(folder / "ca.pem"), "min-version": 1.3, **files}
    comm = {"default-scheme": "tls", "require-encryption": True, "tls": tls}
    text: str = yaml.safe_dump({"distributed": {"comm": comm}}, sort_keys=False)
    return text.encode()


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--days", default=90, show_default=True, type=click.IntRange(1), help="How long they are valid.")
def main(folder: Path, days: int) -> None:
    """Make certificates for a Dask cluster in the new folder FOLDER, and the Dask configuration that uses them."""
    os.umask(0o077)
    folder = folder.absolute()
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise click.UsageError(f"{folder} exists; certificates are never replaced") from None
    authority = ec.generate_private_key(ec.SECP256R1())
    signed = draft("authority", authority.public_key(), authority.public_key(), days).sign(authority, hashes.SHA256())
    write(folder / "ca.pem", signed.public_bytes(serialization.Encoding.PEM))
    for role, purposes in PURPOSES.items():
        key = ec.generate_private_key(ec.SECP256R1())
        wanted = draft(role, key.public_key(), authority.public_key(), days)
        wanted = wanted.add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        certificate = wanted.sign(authority, hashes.SHA256())
        write(folder / f"{role}.pem", certificate.public_bytes(serialization.Encoding.PEM))
        text = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        write(folder / f"{role}-key.pem", key.private_bytes(*text))
    write(folder / "dask.yaml", SETTINGS.read_bytes())
    write(folder / "tls.yaml", configuration(folder))
    click.echo(f"export DASK_CONFIG={folder}")


if __name__ == "__main__":
    main()
