//! Certificates of the roles are renewed before they end, while the roles run: those read the files again by themselves.

use crate::data::DataFolder;
use crate::error::UpError;
use crate::init::{CERTIFICATES, issue_certificates, root_key};
use crate::settings::Settings;
use clock::unix_ms;
use std::time::Duration;
use tokio::time::sleep;
use trust::{ROLE_CERTIFICATE_DAYS, RoleCertificate};

/// How often it is looked at how long they still hold.
const LOOK: Duration = Duration::from_secs(30);
/// They are renewed when a third of their life is left, ms.
const RENEW_BEFORE_MS: u64 = ROLE_CERTIFICATE_DAYS * 86_400_000 / 3;

/// A certificate of a role.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct CertificateLine {
    /// The role.
    pub role: &'static str,
    /// When it ends, ms since 1970; absent if it cannot be read.
    pub expires_at_ms: Option<u64>,
}

/// Issues all certificates of a network on this machine anew. Roles that run take them within seconds. No other key changes.
///
/// # Errors
/// Nothing is there, or the disk refuses.
pub fn renew_certificates(data: &DataFolder) -> Result<Vec<CertificateLine>, UpError> {
    let missing = || UpError::NotUp(data.path().to_owned());
    let settings = Settings::load(data)?.ok_or_else(missing)?;
    let root = root_key(data)?.ok_or_else(missing)?;
    issue_certificates(data, &root, &settings, unix_ms())?;
    Ok(certificates(data))
}

/// How long the certificates of a network on this machine hold.
#[must_use]
pub fn certificates(data: &DataFolder) -> Vec<CertificateLine> {
    let expires_at_ms = |name: &str| {
        let read = |extension| data.read(&format!("{name}.{extension}")).ok().flatten();
        let certificate = RoleCertificate::from_pem(&read("crt")?, &read("key")?).ok()?;
        // Halves of two renewals: no role could start with them.
        trust::server_config(&certificate, &[]).ok()?;
        certificate.expires_at_ms()
    };
    CERTIFICATES.map(|(role, _)| CertificateLine { role, expires_at_ms: expires_at_ms(role) }).into()
}

/// Renews them whenever it is time; never ends.
pub(crate) async fn keep_certificates(data: &DataFolder, say: &dyn Fn(&str)) {
    let mut failing = false;
    loop {
        sleep(LOOK).await;
        match renew_if_due(data, unix_ms()) {
            Ok(true) => say("certificates renewed"),
            Ok(false) => failing = false,
            Err(error) => {
                // Once for each time that it begins.
                if !std::mem::replace(&mut failing, true) {
                    say(&format!("certificates cannot be renewed: {error}"));
                }
            }
        }
    }
}

/// Whether it was time. What cannot be read is renewed too.
fn renew_if_due(data: &DataFolder, now_ms: u64) -> Result<bool, UpError> {
    let holds = |line: &CertificateLine| {
        line.expires_at_ms.is_some_and(|ends_ms| ends_ms.saturating_sub(now_ms) > RENEW_BEFORE_MS)
    };
    if certificates(data).iter().all(holds) {
        return Ok(false);
    }
    renew_certificates(data).map(|_| true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::init::{InitOptions, init};

    const DAY_MS: u64 = 86_400_000;

    #[test]
    fn a_certificate_about_to_end_is_renewed_once_and_no_other_key_changes() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataFolder::create(folder.path()).unwrap();
        let made = init(&data, &InitOptions::default()).unwrap();
        let keys = || ["root.key", "token.key", "secrets.toml"].map(|name| data.read(name).unwrap().unwrap());
        let (before, now_ms) = (keys(), unix_ms());
        assert!(!renew_if_due(&data, now_ms).unwrap(), "they are new");
        assert!(!renew_if_due(&data, now_ms + 59 * DAY_MS).unwrap());
        let root = root_key(&data).unwrap().unwrap();
        issue_certificates(&data, &root, &made.settings, now_ms - 89 * DAY_MS).unwrap();
        assert!(renew_if_due(&data, now_ms).unwrap(), "a day is left");
        assert!(!renew_if_due(&data, now_ms).unwrap(), "once");
        let lines = certificates(&data);
        assert!(lines.iter().all(|line| line.expires_at_ms.unwrap() > now_ms + 89 * DAY_MS), "{lines:?}");
        std::fs::remove_file(data.file("relay.key")).unwrap();
        assert!(renew_if_due(&data, now_ms).unwrap(), "what is missing is made");
        assert_eq!(keys(), before);
    }
}
