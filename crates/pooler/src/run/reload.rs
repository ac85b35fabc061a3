//! Reading the configuration again: all of it is put in force, or nothing.

use crate::console::{ReloadReport, ReloadRequest};
use crate::control::EngineHandle;
use crate::logging::Logging;
use crate::tls::{self, TlsContext};
use crate::truth::ConfigTruth;
use settings::diagnostic::{Diagnostic, Severity};
use settings::pooler::{ConfigRow, PoolerConfig, load, show_config};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::mpsc::Receiver;

/// What a reload works on.
pub(super) struct Reloading {
    /// Where the new configuration goes.
    pub(super) handle: EngineHandle,
    /// Where it stands.
    pub(super) path: PathBuf,
    /// What the process was started with.
    pub(super) started: Arc<PoolerConfig>,
    /// The TLS that is in force.
    pub(super) tls: TlsContext,
    /// The log.
    pub(super) logging: Arc<Logging>,
    /// Who is asked whether the file has changed.
    pub(super) truth: Arc<ConfigTruth>,
}

impl Reloading {
    /// Serves reload requests one after the other, from HUP and from the console.
    pub(super) async fn serve(mut self, mut requests: Receiver<ReloadRequest>) {
        while let Some(request) = requests.recv().await {
            // Whatever becomes of the configuration: a log rotation asks by HUP, too.
            self.logging.reopen();
            let result = reload(&self.handle, self.path.clone(), &self.started, &self.tls).await;
            let answer = match result {
                Ok(Reloaded { report, config, files, tls }) => {
                    self.tls = tls;
                    self.logging.set_verbose(config.general.verbose);
                    let truth = Arc::clone(&self.truth);
                    // It reads the files for their hashes.
                    drop(tokio::task::spawn_blocking(move || truth.reloaded(files, config)).await);
                    tracing::info!(notes = report.notes.join("; "), "configuration reloaded");
                    Ok(report)
                }
                Err(error) => {
                    tracing::error!(%error, "configuration not reloaded, the old one stays in force");
                    Err(error)
                }
            };
            // HUP does not wait for it.
            drop(request.answer.send(answer));
        }
    }
}

/// What is in force now.
#[derive(Debug)]
struct Reloaded {
    report: ReloadReport,
    config: Arc<PoolerConfig>,
    files: Vec<PathBuf>,
    tls: TlsContext,
}

async fn reload(
    handle: &EngineHandle,
    path: PathBuf,
    started: &PoolerConfig,
    tls: &TlsContext,
) -> Result<Reloaded, String> {
    let tls = tls.clone();
    let read = move || {
        let loaded = load(&path)?;
        let tls = tls::load(&loaded, &tls)?;
        Ok::<_, Vec<Diagnostic>>((loaded, tls))
    };
    let read = tokio::task::spawn_blocking(read).await.map_err(|error| error.to_string())?;
    let (loaded, tls) = read.map_err(|diagnostics| words_of(&diagnostics))?;
    let warnings = loaded.notes.iter().filter(|note| note.severity != Severity::Note).map(line);
    let restart = needs_restart(started, &loaded.config);
    let notes = warnings.chain(restart.into_iter().map(|name| format!("{name} needs a restart"))).collect();
    let config = Arc::new(loaded.config);
    handle.reload(Arc::clone(&config), tls.clone()).await.map_err(|error| error.to_string())?;
    Ok(Reloaded { report: ReloadReport { notes }, config, files: loaded.files, tls })
}

/// The settings that differ from what the process started with and are read only then, by the table of settings.
fn needs_restart(started: &PoolerConfig, now: &PoolerConfig) -> Vec<&'static str> {
    let (started, now) = (show_config(started), show_config(now));
    let differs = |(before, after): (&ConfigRow, &ConfigRow)| {
        (!after.changeable && before.value != after.value).then_some(after.key)
    };
    started.iter().zip(&now).filter_map(differs).collect()
}

/// One line, for the log and the console.
fn words_of(diagnostics: &[Diagnostic]) -> String {
    diagnostics.iter().map(line).collect::<Vec<_>>().join("; ")
}

pub(crate) fn line(diagnostic: &Diagnostic) -> String {
    match &diagnostic.place {
        Some(place) => {
            format!("{}:{}:{}: {}", place.file().display(), place.line(), place.column(), diagnostic.message)
        }
        None => diagnostic.message.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use settings::pooler::parse_ini;

    fn config(listen_port: u16, pool_size: usize) -> PoolerConfig {
        let text = format!(
            "[databases]\n* = host=127.0.0.1\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {listen_port}\n\
             auth_type = any\npool_mode = transaction\ndefault_pool_size = {pool_size}\n"
        );
        parse_ini(&text).unwrap().config
    }

    #[test]
    fn a_change_that_needs_a_restart_is_named_and_others_are_not() {
        assert_eq!(needs_restart(&config(6432, 5), &config(6432, 9)), [""; 0]);
        assert_eq!(needs_restart(&config(6432, 5), &config(6433, 5)), ["listen_port"]);
    }

    #[test]
    fn a_file_with_errors_changes_nothing_and_says_where() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pgbouncer.ini");
        std::fs::write(&path, "[pgbouncer]\nlisten_addr = 127.0.0.1\nno_such_setting = 1\n").unwrap();
        let handle = crate::control::tests::answering(|_| panic!("nothing may reach the engine"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let error =
            runtime.block_on(reload(&handle, path, &config(6432, 5), &TlsContext::default())).unwrap_err();
        assert!(error.contains("pgbouncer.ini:3:") && error.contains("no_such_setting"), "{error}");
    }
}
