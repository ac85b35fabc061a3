//! Programs of other people, each doing real work through the proxy. `clients/install` fetches them.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::site::site;
use crate::support::{SECRET, echo, start, start_with};

/// The longest that one of them works.
const PATIENCE: Duration = Duration::from_secs(120);

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A program of the system, or one that `clients/install` has made.
fn found(name: &str) -> Option<PathBuf> {
    let made = [root().join("target/clients/python/bin"), root().join("target/clients/rust/debug")];
    let path = std::env::var_os("PATH").unwrap_or_default();
    made.into_iter()
        .chain(std::env::split_paths(&path))
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

/// Says that a test is not run. `scripts/test` repeats it at its end, from the file that it names.
fn not_run(reason: &str) {
    use std::io::Write as _;
    eprintln!("not run: {reason}");
    if let Some(list) = std::env::var_os("HOLDFAST_NOT_RUN") {
        let thread = std::thread::current();
        let mut list = std::fs::OpenOptions::new().create(true).append(true).open(list).unwrap();
        writeln!(list, "{}: {reason}", thread.name().unwrap_or_default()).unwrap();
    }
}

/// Runs a program, which has to succeed; gives what it has printed. `None` if it is not installed.
async fn run(program: &str, arguments: &[&str]) -> Option<String> {
    let Some(file) = found(program) else {
        not_run(&format!("{program} is not installed: clients/install"));
        return None;
    };
    let mut command = Command::new(file);
    command.args(arguments).kill_on_drop(true).env_remove("http_proxy").env_remove("https_proxy");
    command.env("no_proxy", "").stdin(Stdio::null());
    let output = tokio::time::timeout(PATIENCE, command.output()).await.expect("it hangs").unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let problems = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {}\n{told}\n{problems}", output.status);
    Some(told)
}

/// The same site over TLS, by Python. `None` if that is not installed.
async fn secure_site() -> Option<(SocketAddr, Child)> {
    let Some(python) = found("python3") else {
        not_run("python3 is not installed: clients/install");
        return None;
    };
    let certificate = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let file = std::env::temp_dir().join(format!("holdfast-site-{}.pem", uuid::Uuid::now_v7().simple()));
    let pem = pem("PRIVATE KEY", &certificate.signing_key.serialize_der())
        + &pem("CERTIFICATE", certificate.cert.der());
    std::fs::write(&file, pem).unwrap();
    let mut command = Command::new(python);
    command.arg(root().join("clients/https_site.py")).arg(&file).kill_on_drop(true).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut port = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).await.unwrap();
    std::fs::remove_file(file).unwrap();
    Some((SocketAddr::from(([127, 0, 0, 1], port.trim().parse().unwrap())), child))
}

/// Textual encoding (RFC 7468).
fn pem(label: &str, der: &[u8]) -> String {
    let encoded = STANDARD.encode(der);
    let lines: Vec<_> =
        encoded.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap()).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}

#[tokio::test(flavor = "multi_thread")]
async fn curl_by_socks5_by_connect_and_in_absolute_form() {
    let site = site().await;
    let proxy = start(&[site]).await;
    let login = format!("acme-session-curl:{SECRET}");
    let (socks, http) = (format!("socks5h://{}", proxy.address), format!("http://{}", proxy.address));
    let body: String = (0..100_000).map(|number| char::from(b'a' + (number % 26) as u8)).collect();
    for (through, tunnel) in [(&socks, false), (&http, false), (&http, true)] {
        let mut basic = vec!["-sS", "--fail", "-x", through, "-U", &login];
        if tunnel {
            basic.push("--proxytunnel");
        }
        let with = |more: &[&str]| {
            [&basic[..], more].concat().iter().map(|word| (*word).to_owned()).collect::<Vec<_>>()
        };
        let go = async |arguments: Vec<String>| {
            run("curl", &arguments.iter().map(String::as_str).collect::<Vec<_>>()).await
        };
        let Some(page) = go(with(&[&format!("http://{site}/")])).await else { return };
        assert!(page.contains("<title>fifty</title>"), "{page}");
        let echoed = go(with(&["--data-binary", &body, &format!("http://{site}/echo")])).await.unwrap();
        assert!(echoed == body, "{} bytes of {}", echoed.len(), body.len());
        // A large body makes curl ask first (Expect: 100-continue).
        let chunked = with(&[
            "-H",
            "Transfer-Encoding: chunked",
            "--data-binary",
            &body,
            &format!("http://{site}/echo"),
        ]);
        assert!(go(chunked).await.unwrap() == body);
        let counted = go(with(&[
            "-w",
            "%{num_connects} ",
            "-o",
            "/dev/null",
            "-o",
            "/dev/null",
            "-o",
            "/dev/null",
            &format!("http://{site}/[1-3].svg"),
        ]))
        .await
        .unwrap();
        assert_eq!(counted, "1 0 0 ", "the connection to the proxy is not kept");
        assert_eq!(go(with(&[&format!("http://{site}/chunked")])).await.unwrap().len(), 1_000_000);
    }
    let code =
        ["-s", "-o", "/dev/null", "-w", "%{http_code} %{header_json}", "-x", &http, "http://10.0.0.1/"];
    let refused = run("curl", &[&code[..], &["-U", &login]].concat()).await.unwrap();
    assert!(refused.starts_with("403 ") && refused.contains("\"policy\""), "{refused}");
    assert!(run("curl", &code).await.unwrap().starts_with("407 "));
}

async fn python(script: &str) {
    let site = site().await;
    let Some((secure, mut child)) = secure_site().await else { return };
    let proxy = start(&[site, secure]).await;
    let script = root().join("clients").join(script);
    let (http, https) = (format!("http://{site}"), format!("https://{secure}"));
    let proxy = proxy.address.to_string();
    if found("python").is_some_and(|python| python.starts_with(root())) {
        run("python", &[script.to_str().unwrap(), &proxy, "acme", SECRET, &http, &https]).await;
    } else {
        not_run("its Python modules are not installed: clients/install");
    }
    child.kill().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_by_socks5_by_connect_and_in_absolute_form() {
    python("with_requests.py").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn httpx_by_socks5_by_connect_and_in_absolute_form() {
    python("with_httpx.py").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fast_socks5() {
    let target = echo().await;
    let proxy = start(&[target]).await;
    let (address, port) = (proxy.address.to_string(), target.port().to_string());
    run("client-fast-socks5", &[&address, "acme", SECRET, &port]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn chromium_loads_a_page_with_50_resources() {
    let site = site().await;
    let Some((secure, mut child)) = secure_site().await else { return };
    let proxy = start_with(&[site, secure], |config, _| {
        config.listen[0].no_auth_account = Some("acme".into());
    })
    .await;
    let profile = std::env::temp_dir().join(format!("holdfast-chromium-{}", uuid::Uuid::now_v7().simple()));
    let profile_option = format!("--user-data-dir={}", profile.display());
    for through in [format!("socks5://{}", proxy.address), format!("http://{}", proxy.address)] {
        for page in [format!("http://{site}/"), format!("https://{secure}/")] {
            let before = proxy.providers.asked().len();
            let dom = run(
                "chromium",
                &[
                    "--headless=new",
                    "--no-sandbox",
                    "--disable-gpu",
                    "--disable-dev-shm-usage",
                    "--ignore-certificate-errors",
                    &profile_option,
                    &format!("--proxy-server={through}"),
                    // Addresses of loopback do not go through a proxy otherwise.
                    "--proxy-bypass-list=<-loopback>",
                    "--timeout=60000",
                    "--dump-dom",
                    &page,
                ],
            )
            .await;
            let Some(dom) = dom else { return };
            assert!(dom.contains("loaded 50 of 50"), "{through} {page}: {dom:.300}");
            assert!(proxy.providers.asked().len() > before, "it has not come through the proxy");
        }
    }
    child.kill().await.unwrap();
    let _ = std::fs::remove_dir_all(profile);
}
