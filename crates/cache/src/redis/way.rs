//! From the configuration to addresses, a login and TLS.

use std::path::Path;
use std::sync::Arc;

use redis::{ConnectionAddr, IntoConnectionInfo as _, ProtocolVersion};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};

use super::connect::Connector;
use crate::config::CacheConfigError;

/// How to get to the servers.
pub(crate) struct Way {
    pub(super) cluster: bool,
    /// `host:port`, at least one.
    pub(super) addresses: Vec<String>,
    pub(super) connector: Connector,
}

impl Way {
    pub(crate) fn parse(
        url: &str,
        cluster: bool,
        nodes: &[String],
        authorities: Option<&Path>,
    ) -> Result<Self, CacheConfigError> {
        let (rest, encrypted) = scheme(url)?;
        // The crate knows how the parts are escaped; what it says about a mistake could hold the password.
        let info = format!("redis://{rest}")
            .into_connection_info()
            .map_err(|_| CacheConfigError::Url("is not redis://user:password@host:port/database"))?;
        let ConnectionAddr::Tcp(host, port) = info.addr() else {
            return Err(CacheConfigError::Url("has no host"));
        };
        let login =
            info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3).set_skip_set_lib_name();
        if cluster && login.db() != 0 {
            return Err(CacheConfigError::Url("names a database; a Cluster has only 0"));
        }
        let mut addresses = vec![joined(host, *port)];
        for node in nodes {
            let port = node.rsplit_once(':').filter(|(host, _)| !host.is_empty()).map(|(_, port)| port);
            match port.map(str::parse::<u16>) {
                Some(Ok(_)) => addresses.push(node.clone()),
                _ => return Err(CacheConfigError::Node(node.clone())),
            }
        }
        if !cluster && addresses.len() > 1 {
            return Err(CacheConfigError::Url("is a single server, but cache.nodes names others"));
        }
        let tls = match (encrypted, authorities) {
            (true, Some(path)) => Some(client_config(path)?),
            (true, None) => return Err(CacheConfigError::Authorities("rediss:// needs it".to_owned())),
            (false, Some(_)) => {
                return Err(CacheConfigError::Authorities("is of no use without rediss://".to_owned()));
            }
            (false, None) => None,
        };
        Ok(Self { cluster, addresses, connector: Connector::new(login, tls) })
    }
}

fn scheme(url: &str) -> Result<(&str, bool), CacheConfigError> {
    match url.split_once("://") {
        Some(("redis" | "valkey", rest)) => Ok((rest, false)),
        Some(("rediss" | "valkeys", rest)) => Ok((rest, true)),
        _ => Err(CacheConfigError::Url("does not begin with redis:// or rediss://")),
    }
}

pub(super) fn joined(host: &str, port: u16) -> String {
    if host.contains(':') && !host.starts_with('[') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}

fn client_config(path: &Path) -> Result<Arc<ClientConfig>, CacheConfigError> {
    let wrong = |why: String| CacheConfigError::Authorities(format!("{}: {why}", path.display()));
    let bytes = std::fs::read(path).map_err(|error| wrong(error.to_string()))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&bytes) {
        let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
        roots.add(certificate).map_err(|error| wrong(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(wrong("holds no certificate".to_owned()));
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(error.to_string()))?;
    Ok(Arc::new(config.with_root_certificates(roots).with_no_client_auth()))
}
