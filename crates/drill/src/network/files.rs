//! The file of each role, as an operator of many machines writes it.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;

use trust::NetworkId;

/// The database of the network, on the private server.
pub(super) const DATABASE: &str = "holdfast";
/// Servers of one user's pool.
const POOL_SIZE: u32 = 10;
/// How long the pooler lets a client wait for a server: shorter than the roles wait.
const POOLER_WAIT_S: u64 = 1;

/// What is the same for all roles.
#[derive(Debug)]
pub(super) struct Files<'a> {
    pub network: NetworkId,
    pub home: &'a Path,
    /// Of the database's roles.
    pub password: &'a str,
}

impl Files<'_> {
    pub(crate) fn user_list(&self) -> String {
        ["holdfast_api", "holdfast_relay", "holdfast_worker"]
            .iter()
            .fold(String::new(), |list, user| list + &format!("\"{user}\" \"{}\"\n", self.password))
    }

    pub(crate) fn pooler(&self, listen: SocketAddr, server: SocketAddr) -> String {
        format!(
            "[pooler]\nlisten_addr = \"{}\"\nlisten_port = {}\nunix_socket_dir = \"\"\nauth_type = \"scram-sha-256\"\n\
             auth_file = {}\npool_mode = \"transaction\"\ndefault_pool_size = {POOL_SIZE}\n\
             query_wait_timeout = {POOLER_WAIT_S}\n\n[databases]\n{DATABASE} = {{ host = \"{}\", port = {} }}\n",
            listen.ip(),
            listen.port(),
            self.path("userlist.txt"),
            server.ip(),
            server.port()
        )
    }

    pub(crate) fn api(&self, listen: SocketAddr, path: SocketAddr) -> String {
        format!(
            "network = \"{}\"\nlisten = \"{listen}\"\n{}token_key = {}\ntoken_keys = {}\nroot_key = {}\nstate_folder = {}\n{}",
            self.network,
            self.certificate("api"),
            self.path("token.key"),
            self.path("token-keys"),
            self.path("root.key"),
            self.path("api"),
            self.database("api", path),
        )
    }

    pub(crate) fn worker(&self, path: SocketAddr) -> String {
        format!("network = \"{}\"\n{}", self.network, self.database("worker", path))
    }

    pub(crate) fn relay(&self, name: &str, listen: SocketAddr, path: SocketAddr, further: &str) -> String {
        format!(
            "network = \"{}\"\n{}{}\n[relay]\nlisten = \"{listen}\"\npublic_address = \"{listen}\"\nstate_folder = {}\n{further}\n",
            self.network,
            self.certificate("relay"),
            self.database("relay", path),
            self.path(name),
        )
    }

    pub(crate) fn proxy(listen: SocketAddr, target: SocketAddr) -> String {
        format!("allow_exact = [\"{target}\"]\ndrain_s = 2\n\n[[listen]]\naddress = \"{listen}\"\n")
    }

    pub(crate) fn provider(target: SocketAddr) -> String {
        format!("[egress]\nports = \"web\"\nallow_exact = [\"{target}\"]\n")
    }

    /// The address of a role's way to the database.
    pub(crate) fn url(&self, role: &str, path: SocketAddr) -> String {
        format!("postgresql://holdfast_{role}:{}@{path}/{DATABASE}", self.password)
    }

    fn database(&self, role: &str, path: SocketAddr) -> String {
        let mut text = String::from("\n[database]\n");
        // Writing to a String cannot fail.
        let _ =
            writeln!(text, "url = \"{}\"\npooler_wait_ms = {}", self.url(role, path), POOLER_WAIT_S * 1_000);
        text
    }

    fn certificate(&self, role: &str) -> String {
        format!(
            "certificate = {}\ncertificate_key = {}\n",
            self.path(&format!("{role}.crt")),
            self.path(&format!("{role}.key"))
        )
    }

    /// A file of the network, as a TOML string.
    fn path(&self, name: &str) -> String {
        toml::Value::from(self.home.join(name).display().to_string()).to_string()
    }
}
