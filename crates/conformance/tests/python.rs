//! Another implementation against ours: an opener in Python, written from the page alone (`conformance/python`).
#![allow(missing_docs)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests")]

#[path = "../../relay/tests/support.rs"]
mod support;

use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use support::{Network, echo};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use trust::Role;

/// How a script says that what it needs is not installed.
const NOT_INSTALLED: i32 = 77;

#[tokio::test(flavor = "multi_thread")]
async fn an_opener_in_python_sends_and_receives_through_our_relay_and_provider() {
    let network = Network::start().await;
    let provider = network.provider().await;
    let opener = network.member(Role::App);
    let contract = network.contract(&opener, 1 << 30);
    let target = echo().await;
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let (signing, sealing) = opener.identity.secret().split_at(32);
    let given = serde_json::json!({
        "address": network.address.to_string(),
        "network": hex(&network.network().0),
        "client": opener.client.0.to_string(),
        "role": Role::App.number(),
        "token": opener.token,
        "signing_secret": hex(signing),
        "sealing_secret": hex(sealing),
        "provider": provider.member.client.0.to_string(),
        "provider_key": hex(&provider.member.identity.public().seal_key()),
        "contract": contract.id.0.to_string(),
        "contract_text": *contract.text,
        "target_host": target.ip().to_string(),
        "target_port": target.port(),
    });
    let run = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/python/run");
    let mut child = Command::new(run)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(given.to_string().as_bytes()).await.unwrap();
    let waited = tokio::time::timeout(Duration::from_secs(60), child.wait_with_output()).await;
    let output = waited.expect("the script hangs").unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.code() == Some(NOT_INSTALLED) {
        return not_run(told.trim());
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}{complaint}");
    assert!(told.starts_with("2 streams, 4000000 bytes each way"), "{told}");
    network.until(|status| status.streams == 0).await;
    // Both ways are billed, with 16 bytes for each message.
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(network.written.billed() >= 8_000_000, "{}", network.written.billed());
}

/// Says that the test is not run. `scripts/test` repeats it at its end, from the file that it names.
fn not_run(reason: &str) {
    if let Some(list) = std::env::var_os("HOLDFAST_NOT_RUN") {
        let mut list = std::fs::OpenOptions::new().create(true).append(true).open(list).unwrap();
        writeln!(list, "the opener in Python: {reason}").unwrap();
    }
}
