//! What must hold between the settings of TLS.

use super::super::apply::Places;
use super::super::model::General;
use super::super::tls::{SslMode, Tls};
use crate::diagnostic::{Diagnostic, Report};
use crate::source::{Place, Sources};
use std::path::Path;

/// The names of one side's settings.
struct Side<'a> {
    tls: &'a Tls,
    mode: &'static str,
    key_file: &'static str,
    cert_file: &'static str,
    ca_file: &'static str,
    protocols: &'static str,
}

pub(super) fn check(general: &General, places: &Places<'_>, sources: &dyn Sources, report: &mut Report) {
    let client = Side {
        tls: &general.client_tls,
        mode: "client_tls_sslmode",
        key_file: "client_tls_key_file",
        cert_file: "client_tls_cert_file",
        ca_file: "client_tls_ca_file",
        protocols: "client_tls_protocols",
    };
    let server = Side {
        tls: &general.server_tls,
        mode: "server_tls_sslmode",
        key_file: "server_tls_key_file",
        cert_file: "server_tls_cert_file",
        ca_file: "server_tls_ca_file",
        protocols: "server_tls_protocols",
    };
    let needed = "to offer TLS to clients";
    if client.tls.mode != SslMode::Disable {
        client.demand(client.key_file, client.tls.key_file.as_deref(), needed, places, report);
        client.demand(client.cert_file, client.tls.cert_file.as_deref(), needed, places, report);
    }
    for side in [client, server] {
        side.check(places, sources, report);
    }
}

impl Side<'_> {
    fn check(&self, places: &Places<'_>, sources: &dyn Sources, report: &mut Report) {
        if self.tls.mode.verifies() {
            let reason = "to check the other side's certificate";
            self.demand(self.ca_file, self.tls.ca_file.as_deref(), reason, places, report);
        }
        let place = |name: &str| places.get(name).map(|entry| &entry.place);
        // Then both have been demanded already.
        let demanded = self.mode == "client_tls_sslmode" && self.tls.mode != SslMode::Disable;
        for (has, given, lacks, missing) in [
            (self.key_file, &self.tls.key_file, self.cert_file, &self.tls.cert_file),
            (self.cert_file, &self.tls.cert_file, self.key_file, &self.tls.key_file),
        ] {
            if given.is_some() && missing.is_none() && !demanded {
                let message = format!("`{has}` needs `{lacks}` beside it");
                report.add(Diagnostic::error("tls-file-missing", message).at_any(place(has)));
            }
        }
        if self.tls.protocols.asks_for_old {
            let message =
                format!("TLS 1.0 and 1.1 of `{}` are not built: they are not safe any more", self.protocols);
            report.add(Diagnostic::note("old-tls", message).at_any(place(self.protocols)));
        }
        if let Some(key_file) = &self.tls.key_file
            && sources.readable_by_others(key_file) == Some(true)
        {
            let message =
                format!("`{}` holds a secret and every user of this machine may read it", self.key_file);
            let warning = Diagnostic::warning("secret-file", message).at_any(place(self.key_file));
            report.add(warning.help("take the right to read it from others"));
        }
    }

    fn demand(
        &self,
        name: &str,
        file: Option<&Path>,
        reason: &str,
        places: &Places<'_>,
        report: &mut Report,
    ) {
        if file.is_none() {
            let place: Option<&Place> =
                places.get(name).or_else(|| places.get(self.mode)).map(|entry| &entry.place);
            let message = format!("`{}` needs `{name}` {reason}", self.mode);
            report.add(Diagnostic::error("tls-file-missing", message).at_any(place));
        }
    }
}
