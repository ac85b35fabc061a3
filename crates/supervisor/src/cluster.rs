//! The private PostgreSQL: made once, kept in the data folder, reached only by a socket that its owner alone can enter.

use crate::data::DataFolder;
use crate::error::UpError;
use crate::settings::Secrets;
use ::cluster::Binaries;
use std::fs;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The superuser.
const ADMIN: &str = "postgres";
/// The database, and the plain user that owns it: for the psql line.
pub(crate) const DATABASE: &str = "holdfast";
/// The number in the socket's name; nothing listens on TCP.
const PORT: u16 = 5_432;
/// Connections of the server: the pooler takes fewer.
const MAX_CONNECTIONS: u32 = 100;

/// The folder of the socket.
pub(crate) fn socket_folder(data: &DataFolder) -> PathBuf {
    data.file("postgres")
}

pub(crate) fn socket_path(data: &DataFolder) -> PathBuf {
    socket_folder(data).join(format!(".s.PGSQL.{PORT}"))
}

fn data_folder(data: &DataFolder) -> PathBuf {
    data.file("postgres").join("data")
}

/// The server's own address, for migrations, as its superuser.
pub(crate) fn direct_path(data: &DataFolder) -> String {
    // In a connection string, quotes and backslashes are escaped.
    let folder = socket_folder(data).display().to_string().replace('\\', "\\\\").replace('\'', "\\'");
    format!("host='{folder}' port={PORT} user={ADMIN} dbname={DATABASE}")
}

/// Makes the cluster if there is none; says whether the installed server fits the one there is.
pub(crate) fn prepare(data: &DataFolder, binaries: &Binaries, secrets: &Secrets) -> Result<(), UpError> {
    let folder = data_folder(data);
    if let Ok(version) = fs::read_to_string(folder.join("PG_VERSION")) {
        if version.trim() == binaries.major_version().to_string() {
            return Ok(());
        }
        let cause = format!(
            "made by PostgreSQL {}, and version {} is installed: set PG_BIN to the folder of the older server's programs",
            version.trim(),
            binaries.version()
        );
        return Err(UpError::Damaged { path: folder, cause });
    }
    data.folder("postgres")?;
    // Whole or not at all: an initdb that was interrupted is begun again.
    let draft = data.file("postgres").join("data.new");
    let disk = |what, path: &Path| {
        let path = path.to_owned();
        move |source| UpError::Disk { what, path, source }
    };
    if draft.exists() {
        fs::remove_dir_all(&draft).map_err(disk("remove", &draft))?;
    }
    let initdb = plain(&binaries.program("initdb"))
        .args(["--auth-local=trust", "--auth-host=reject", "--encoding=UTF8", "--locale=C"])
        .arg(format!("--username={ADMIN}"))
        .arg("-D")
        .arg(&draft)
        .output();
    finished("initdb", initdb)?;
    let statements = [
        format!("create role {DATABASE} login password '{}'", secrets.database_user),
        format!("create database {DATABASE} owner {DATABASE}"),
    ];
    single_user(binaries, &draft, &statements)?;
    fs::rename(&draft, &folder).map_err(disk("put in place", &folder))
}

/// Turns this process into the server of that data folder. Returns only if that fails.
///
/// # Errors
/// The program cannot be run.
pub fn exec(data: &DataFolder) -> Result<std::convert::Infallible, UpError> {
    let binaries = Binaries::find().map_err(UpError::Server)?;
    let program = binaries.program("postgres");
    let mut command = plain(&program);
    command
        .arg("-D")
        .arg(data_folder(data))
        .arg("-k")
        .arg(socket_folder(data))
        .arg("-p")
        .arg(PORT.to_string());
    for setting in [
        "listen_addresses=".to_owned(),
        "unix_socket_permissions=0700".to_owned(),
        "logging_collector=off".to_owned(),
        format!("max_connections={MAX_CONNECTIONS}"),
    ] {
        command.arg("-c").arg(setting);
    }
    Err(UpError::Disk { what: "run", path: program, source: command.exec() })
}

/// Whether the process with this id says that it is ready. The postmaster writes its state into the eighth line of its file.
pub(crate) fn is_ready(data: &DataFolder, pid: u32) -> bool {
    let text = fs::read_to_string(data_folder(data).join("postmaster.pid")).unwrap_or_default();
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    lines.first().and_then(|line| line.parse().ok()) == Some(pid) && lines.get(7) == Some(&"ready")
}

/// Runs statements before there is a server to connect to, one a line.
fn single_user(binaries: &Binaries, folder: &Path, statements: &[String]) -> Result<(), UpError> {
    let run = || {
        let mut child = plain(&binaries.program("postgres"))
            .args(["--single", "-c", "exit_on_error=on", "-D"])
            .arg(folder)
            .arg("postgres")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        if let Some(mut input) = child.stdin.take() {
            for statement in statements {
                writeln!(input, "{statement}")?;
            }
        }
        child.wait_with_output()
    };
    finished("postgres --single", run())
}

fn finished(what: &str, output: std::io::Result<Output>) -> Result<(), UpError> {
    let fail = |cause: String| Err(UpError::Server(anyhow::anyhow!("{what} failed: {cause}")));
    match output {
        Err(error) => fail(error.to_string()),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            // A statement that fails in single-user mode ends in a text, not in a status.
            if output.status.success() && !said.contains("ERROR:") {
                Ok(())
            } else {
                fail(said.trim().to_owned())
            }
        }
    }
}

/// A program with a small environment, in the root folder.
fn plain(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("LC_ALL", "C").current_dir("/").stdin(Stdio::null());
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    command
}
