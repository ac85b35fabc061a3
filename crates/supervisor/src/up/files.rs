//! The files that the children read, written anew at each start.

use crate::cluster::{self, DATABASE};
use crate::error::UpError;
use crate::init::Initialised;
use crate::settings::Ports;
use std::net::{Ipv4Addr, SocketAddr};

const HEAD: &str = "# Written by `holdfast up` at each start.\n";
/// Servers of one user's pool, and of all together: fewer than PostgreSQL lets in.
const POOL_SIZE: u32 = 20;
const MOST_SERVERS: u32 = 80;
/// How long the pooler lets a client wait for a server: shorter than the services wait.
const POOLER_WAIT_S: u32 = 1;
/// How long the proxy's streams may go on when all of it stops.
const DRAIN_S: u64 = 2;

/// `pooler.toml`, its users, and a password file for psql. The psql line.
pub(super) fn write_pooler(made: &Initialised) -> Result<String, UpError> {
    let Initialised { data, secrets, settings, .. } = made;
    let users = [
        ("holdfast_api", &secrets.database_api),
        ("holdfast_relay", &secrets.database_relay),
        ("holdfast_worker", &secrets.database_worker),
        (DATABASE, &secrets.database_user),
    ];
    let list: String = users.iter().map(|(name, password)| format!("\"{name}\" \"{password}\"\n")).collect();
    data.write("userlist.txt", &list)?;
    let port = settings.ports.pooler;
    data.write("pgpass", &format!("127.0.0.1:{port}:*:{DATABASE}:{}\n", secrets.database_user))?;
    let folder = cluster::socket_folder(data);
    let text = format!(
        "{HEAD}[pooler]
listen_addr = \"127.0.0.1\"
listen_port = {port}
unix_socket_dir = \"\"
auth_type = \"scram-sha-256\"
auth_file = {}
admin_users = \"{DATABASE}\"
pool_mode = \"transaction\"
default_pool_size = {POOL_SIZE}
max_db_connections = {MOST_SERVERS}
query_wait_timeout = {POOLER_WAIT_S}

[databases]
\"{DATABASE}\" = {{ host = {}, port = 5432 }}
",
        quoted(&data.file("userlist.txt").display().to_string()),
        quoted(&folder.display().to_string()),
    );
    data.write("pooler.toml", &text)?;
    let file = data.file("pgpass").display().to_string().replace('\\', "\\\\").replace('\'', "\\'");
    Ok(format!("psql \"host=127.0.0.1 port={port} user={DATABASE} dbname={DATABASE} passfile='{file}'\""))
}

/// A file for each role.
pub(super) fn write_roles(made: &Initialised) -> Result<(), UpError> {
    let Initialised { data, secrets, settings, network, .. } = made;
    let Ports { pooler, api, relay, proxy, demonstration } = settings.ports;
    let listen = |port| quoted(&SocketAddr::new(settings.listen, port).to_string());
    let path = |name: &str| quoted(&data.file(name).display().to_string());
    let database = |user: &str, password: &str| {
        let url = quoted(&format!("postgresql://{user}:{password}@127.0.0.1:{pooler}/{DATABASE}"));
        format!("\n[database]\nurl = {url}\npooler_wait_ms = {}\n", u64::from(POOLER_WAIT_S) * 1_000)
    };
    let certificate = |name: &str| {
        format!(
            "certificate = {}\ncertificate_key = {}\n",
            path(&format!("{name}.crt")),
            path(&format!("{name}.key"))
        )
    };
    let target = quoted(&SocketAddr::from((Ipv4Addr::LOCALHOST, demonstration)).to_string());
    data.write(
        "api.toml",
        &format!(
            "{HEAD}network = \"{network}\"\nlisten = {}\n{}token_key = {}\ntoken_keys = {}\nroot_key = {}\nstate_folder = {}\n{}",
            listen(api),
            certificate("api"),
            path("token.key"),
            quoted(&data.folder("token-keys")?.display().to_string()),
            path("root.key"),
            quoted(&data.folder("api")?.display().to_string()),
            database("holdfast_api", &secrets.database_api),
        ),
    )?;
    data.write(
        "worker.toml",
        &format!("{HEAD}network = \"{network}\"\n{}", database("holdfast_worker", &secrets.database_worker)),
    )?;
    data.write(
        "relay.toml",
        &format!(
            "{HEAD}network = \"{network}\"\n{}{}\n[relay]\nlisten = {}\npublic_address = {}\nstate_folder = {}\n",
            certificate("relay"),
            database("holdfast_relay", &secrets.database_relay),
            listen(relay),
            quoted(&settings.public(relay)),
            quoted(&data.folder("relay")?.display().to_string()),
        ),
    )?;
    data.write(
        "proxy.toml",
        &format!(
            "{HEAD}allow_exact = [{target}]\ndrain_s = {DRAIN_S}\n\n[[listen]]\naddress = {}\n",
            listen(proxy)
        ),
    )?;
    data.folder("provider")?;
    data.write(
        "provider/provider.toml",
        &format!(
            "{HEAD}# The exception is for the demonstration target of this machine, and for this provider only.\n\
             [egress]\nports = \"web\"\nallow_exact = [{target}]\n"
        ),
    )
}

/// A TOML string.
fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}
