//! `holdfast keys`: what the holder of the root key does.

use crate::cli::{KeysArgs, KeysCommand, RenewArgs};
use crate::output;
use crate::process::small_runtime;
use anyhow::{Context as _, bail};
use keys::{Custody, KeysStatus, RotateOptions, Step, read_key, write_certificate};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use supervisor::{CertificateLine, DataFolder, certificates, drop_root, renew_certificates};
use trust::{CertificateRole, KeyState, RootKey};

pub(crate) fn run(args: KeysArgs) -> anyhow::Result<ExitCode> {
    let by_itself = matches!(&args.command, KeysCommand::RenewCertificates(renew) if renew.role.is_some());
    if args.config.is_none() && !by_itself {
        // What is written there has to be the network's own account's.
        drop_root(DataFolder::open(&data(&args))?.path())?;
    }
    match &args.command {
        KeysCommand::Status => status(&args)?,
        KeysCommand::Rotate { settle_s, limit_s } => {
            let options = RotateOptions { settle_ms: settle_s * 1_000, limit: Duration::from_secs(*limit_s) };
            let custody = custody(&args)?;
            let done = small_runtime()?.block_on(custody.rotate(options, |step| say(&tell(&step))))?;
            let text = format!("key {} signs, by ring {}", done.key, done.ring);
            show(args.json, &serde_json::to_value(&done)?, &text)?;
        }
        KeysCommand::Withdraw => {
            let custody = custody(&args)?;
            let ring = small_runtime()?.block_on(custody.withdraw())?;
            show(args.json, &json!({ "ring": ring }), &format!("the new key is taken back, by ring {ring}"))?;
        }
        KeysCommand::Revoke { client, now, limit_s } => {
            let custody = custody(&args)?;
            let within = now.then_some(Duration::from_secs(*limit_s));
            let behind = |count| say(&format!("{count} relays and apis do not hold the new list yet"));
            let list = small_runtime()?.block_on(custody.revoke(*client, within, behind))?;
            let text = if *now {
                format!("client {client} is revoked; every relay and api that lives holds list {list}")
            } else {
                format!("client {client} is revoked, by list {list}; relays and apis hear of it within 10 s")
            };
            let done = json!({ "client": client, "revocations": list, "seen_by_all": now });
            show(args.json, &done, &text)?;
        }
        KeysCommand::RenewCertificates(renew) if renew.role.is_some() => by_hand(&args, renew)?,
        KeysCommand::RenewCertificates(_) => {
            if args.config.is_some() {
                bail!(
                    "certificates of a network that was set up by hand: say --role, --name, --certificate and --certificate-key"
                );
            }
            let lines = renew_certificates(&DataFolder::open(&data(&args))?)?;
            show(args.json, &json!({ "certificates": lines }), &describe(&lines))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn status(args: &KeysArgs) -> anyhow::Result<()> {
    let custody = custody(args)?;
    let status = small_runtime()?.block_on(custody.status())?;
    let lines = match &args.config {
        Some(_) => Vec::new(),
        None => certificates(&DataFolder::open(&data(args))?),
    };
    let mut all = serde_json::to_value(&status)?;
    all["certificates"] = serde_json::to_value(&lines)?;
    show(args.json, &all, &format!("{}{}", page(&status), describe(&lines)))
}

fn data(args: &KeysArgs) -> PathBuf {
    args.data.clone().unwrap_or_else(DataFolder::default_path)
}

fn custody(args: &KeysArgs) -> anyhow::Result<Custody> {
    let file = match &args.config {
        Some(file) => file.clone(),
        None => {
            let file = DataFolder::open(&data(args))?.file("api.toml");
            if !file.exists() {
                bail!("{} is not there yet: `holdfast up` writes it at its first start", file.display());
            }
            file
        }
    };
    let config = api::Config::read(&file)?;
    let root = root_key(args.root_key.as_deref().or(config.root_key.as_deref()))?;
    if root.network() != config.network {
        bail!("the root key is that of another network than the one in {}", file.display());
    }
    let store = config.database.open(config.network).with_context(|| file.display().to_string())?;
    Ok(Custody::new(store, root, config.token_key, config.token_keys))
}

fn root_key(path: Option<&Path>) -> anyhow::Result<RootKey> {
    let path = path.context("no root key: say where it is with --root-key")?;
    Ok(read_key(path, RootKey::from_seed)?)
}

fn by_hand(args: &KeysArgs, renew: &RenewArgs) -> anyhow::Result<()> {
    let (Some(role), Some(certificate), Some(key)) =
        (&renew.role, &renew.certificate, &renew.certificate_key)
    else {
        bail!("--role, --certificate and --certificate-key belong together");
    };
    let role = match role.as_str() {
        "api" => CertificateRole::Api,
        "relay" => CertificateRole::Relay,
        "proxy" => CertificateRole::Proxy,
        other => bail!("no role is called {other}: api, relay or proxy"),
    };
    let root = root_key(args.root_key.as_deref())?;
    let expires_at_ms = write_certificate(&root, role, &renew.names, certificate, key)?;
    let text = format!("{} holds for {}", certificate.display(), days(expires_at_ms));
    show(args.json, &json!({ "certificate": certificate, "expires_at_ms": expires_at_ms }), &text)
}

fn show(json: bool, value: &serde_json::Value, text: &str) -> anyhow::Result<()> {
    let text = if json { serde_json::to_string_pretty(value)? } else { text.to_owned() };
    output::result(&text);
    Ok(())
}

fn say(text: &str) {
    output::error(&format!("keys: {text}"));
}

fn tell(step: &Step) -> String {
    match step {
        Step::Published(key, ring) => format!("key {key} is published, in ring {ring}"),
        Step::TakenUp(key) => format!("key {key} is coming already: going on from there"),
        Step::Unseen(who) => format!("waiting for {who} to see it"),
        Step::Secretless(who) => {
            format!("{who} have not its secret: bring the file to the folder `token_keys` there")
        }
        Step::Settling(until_ms) => {
            format!(
                "all have seen it; it settles for {} s",
                until_ms.saturating_sub(now_ms()).div_ceil(1_000)
            )
        }
        Step::Switched(ring) => format!("it signs, by ring {ring}"),
        Step::Unsigned(who) => format!("waiting for {who} to sign with it"),
        Step::Unanswered(why) => format!("asking again: {why}"),
    }
}

fn page(status: &KeysStatus) -> String {
    let mut page = format!(
        "network {}\nring {}, revocation list {} with {} clients\n\n",
        status.network, status.ring, status.revocations, status.revoked_clients
    );
    for key in &status.keys {
        let state = match key.state {
            KeyState::Coming => "coming",
            KeyState::Signing => "signing",
            KeyState::Retired => "retired",
        };
        let leaves = key.leaves_at_s.map(|at_s| format!(", believed for {}", days(Some(at_s * 1_000))));
        let here = if key.held_here { ", secret here" } else { "" };
        page.push_str(&format!("  key {}  {state}{}{here}\n", key.key, leaves.unwrap_or_default()));
    }
    page.push('\n');
    for one in &status.verifiers {
        let signs = one.signs_with.as_ref().map(|key| format!(", signs with {key}")).unwrap_or_default();
        let late = if one.is_current { "" } else { "  BEHIND" };
        page.push_str(&format!("  {}  ring {}, list {}{signs}{late}\n", one.name, one.ring, one.revocations));
    }
    page
}

fn describe(lines: &[CertificateLine]) -> String {
    lines.iter().fold(String::new(), |text, line| {
        text + &format!("  certificate of {}  {}\n", line.role, days(line.expires_at_ms))
    })
}

fn days(until_ms: Option<u64>) -> String {
    until_ms.map_or_else(
        || "cannot be read".to_owned(),
        |until_ms| format!("{} days", until_ms.saturating_sub(now_ms()) / 86_400_000),
    )
}

fn now_ms() -> u64 {
    clock::unix_ms()
}
