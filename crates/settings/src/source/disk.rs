use super::{MAX_FILE_BYTES, Sources};
use std::fs::File;
use std::io::{self, Read};
use std::net::{IpAddr, ToSocketAddrs};
use std::path::Path;

/// The file system and the system's name look-up.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disk;

impl Sources for Disk {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        File::open(path)?.take(MAX_FILE_BYTES as u64 + 1).read_to_end(&mut bytes)?;
        if bytes.len() > MAX_FILE_BYTES {
            let message = format!("larger than {} MB", MAX_FILE_BYTES >> 20);
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
        }
        Ok(bytes)
    }

    #[cfg(unix)]
    fn readable_by_others(&self, path: &Path) -> Option<bool> {
        use std::os::unix::fs::PermissionsExt as _;
        let metadata = std::fs::metadata(path).ok()?;
        Some(metadata.is_file() && metadata.permissions().mode() & 0o004 != 0)
    }

    #[cfg(not(unix))]
    fn readable_by_others(&self, _path: &Path) -> Option<bool> {
        None
    }

    fn is_directory(&self, path: &Path) -> bool {
        path.is_dir()
    }

    fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        let mut addresses: Vec<IpAddr> = (host, 0).to_socket_addrs()?.map(|address| address.ip()).collect();
        addresses.dedup();
        Ok(addresses)
    }
}
