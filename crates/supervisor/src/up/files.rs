//! The files that the children read, written anew at each start.

use crate::cluster::{self, DATABASE};
use crate::error::UpError;
use crate::init::Initialised;

const HEAD: &str = "# Written by `holdfast up` at each start.\n";
/// Servers of one user's pool, and of all together: fewer than PostgreSQL lets in.
const POOL_SIZE: u32 = 20;
const MOST_SERVERS: u32 = 80;

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

/// A TOML string.
fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}
