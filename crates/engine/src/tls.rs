//! TLS towards receivers: rustls on ring, the machine's own root certificates and those of `--ca-file`; and what a
//! failed handshake is called.

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{CertificateError, ClientConfig, Error, PeerIncompatible, RootCertStore};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Why TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsSetupError {
    /// The file of `--ca-file` is no set of certificates.
    #[error("{}: {reason}; expected PEM certificates", path.display())]
    CaFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// rustls itself objects.
    #[error("TLS cannot be set up")]
    Rustls(#[from] Error),
}

/// The configuration of every TLS connection.
///
/// # Errors
/// A CA file that cannot be used. A machine without root certificates is a warning: `http://` still works.
pub fn client_config(ca_files: &[PathBuf]) -> Result<Arc<ClientConfig>, TlsSetupError> {
    let mut roots = RootCertStore::empty();
    let native = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(native.certs);
    for path in ca_files {
        add_ca_file(&mut roots, path)?;
    }
    if roots.is_empty() {
        tracing::warn!(
            "no root certificates found: every https:// endpoint will fail until some are installed"
        );
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn add_ca_file(roots: &mut RootCertStore, path: &Path) -> Result<(), TlsSetupError> {
    let fault = |reason: String| TlsSetupError::CaFile {
        path: path.to_owned(),
        reason,
    };
    let certificates = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| fault(error.to_string()))?;
    if certificates.is_empty() {
        return Err(fault("holds no certificate".to_owned()));
    }
    for certificate in certificates {
        roots.add(certificate).map_err(|error| fault(error.to_string()))?;
    }
    Ok(())
}

/// The word for a failed handshake.
#[must_use]
pub fn word(error: &Error) -> &'static str {
    match error {
        Error::InvalidCertificate(certificate) => certificate_word(certificate),
        Error::NoCertificatesPresented => "tls_no_certificate",
        Error::PeerIncompatible(PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig) => "tls_old_version",
        Error::PeerIncompatible(_) => "tls_no_common_cipher",
        Error::AlertReceived(alert) => match alert {
            rustls::AlertDescription::HandshakeFailure | rustls::AlertDescription::InsufficientSecurity => {
                "tls_no_common_cipher"
            }
            rustls::AlertDescription::ProtocolVersion => "tls_old_version",
            rustls::AlertDescription::UnrecognisedName => "tls_wrong_name",
            rustls::AlertDescription::CertificateRequired => "tls_client_certificate_wanted",
            _ => "tls_alert",
        },
        Error::NoApplicationProtocol => "tls_no_http1",
        Error::InvalidMessage(_) => "tls_not_tls",
        _ => "tls_failed",
    }
}

fn certificate_word(error: &CertificateError) -> &'static str {
    match error {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "tls_expired",
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => "tls_not_yet_valid",
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "tls_wrong_name"
        }
        CertificateError::UnknownIssuer => "tls_unknown_issuer",
        CertificateError::Revoked => "tls_revoked",
        CertificateError::BadSignature => "tls_bad_signature",
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "tls_wrong_purpose"
        }
        _ => "tls_bad_certificate",
    }
}
