//! Checking a server's certificate, as much as `server_tls_sslmode` asks for.

use super::certificate;
use jiff::Timestamp;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

/// What a server's certificate must be.
#[derive(Debug)]
pub(super) struct ServerCheck {
    algorithms: WebPkiSupportedAlgorithms,
    authorities: Option<Authorities>,
}

#[derive(Debug)]
struct Authorities {
    roots: RootCertStore,
    /// The same, as they came.
    certificates: Vec<CertificateDer<'static>>,
    checks_name: bool,
}

impl ServerCheck {
    /// Anything: an eavesdropper is kept out, an impostor is not.
    pub(super) const fn none(algorithms: WebPkiSupportedAlgorithms) -> Self {
        Self { algorithms, authorities: None }
    }

    /// Of one of these authorities, and with `checks_name` for the name that was connected to.
    pub(super) fn by(
        algorithms: WebPkiSupportedAlgorithms,
        roots: RootCertStore,
        certificates: Vec<CertificateDer<'static>>,
        checks_name: bool,
    ) -> Self {
        Self { algorithms, authorities: Some(Authorities { roots, certificates, checks_name }) }
    }
}

impl ServerCertVerifier for ServerCheck {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(authorities) = &self.authorities else { return Ok(ServerCertVerified::assertion()) };
        let parsed = ParsedCertificate::try_from(end_entity)?;
        if authorities.certificates.iter().any(|known| known.as_ref() == end_entity.as_ref()) {
            // The file names this very certificate, as is usual with one that has signed itself. Such a one may call
            // itself an authority, which a chain must not end with.
            check_time(end_entity, now)?;
        } else {
            verify_server_cert_signed_by_trust_anchor(
                &parsed,
                &authorities.roots,
                intermediates,
                now,
                self.algorithms.all,
            )?;
        }
        if authorities.checks_name {
            verify_server_name(&parsed, server_name)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        if self.authorities.is_none() {
            return Ok(unchecked());
        }
        verify_tls12_signature(message, cert, dss, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        if self.authorities.is_none() {
            return Ok(unchecked());
        }
        verify_tls13_signature(message, cert, dss, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// Where any certificate will do, a signature with its key proves nothing; and certificates that webpki cannot read (of
/// version 1, as `openssl x509 -req` makes them) work as they do with PgBouncer.
fn unchecked() -> HandshakeSignatureValid {
    HandshakeSignatureValid::assertion()
}

fn check_time(certificate: &CertificateDer<'_>, now: UnixTime) -> Result<(), Error> {
    let seconds = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    let now = Timestamp::from_second(seconds).map_err(|_| Error::FailedToGetCurrentTime)?;
    if certificate::is_valid_at(certificate, &now.strftime("%Y%m%d%H%M%S").to_string()) {
        Ok(())
    } else {
        Err(Error::InvalidCertificate(CertificateError::Expired))
    }
}
