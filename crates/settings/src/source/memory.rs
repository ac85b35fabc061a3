use super::{MAX_FILE_BYTES, Sources};
use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// Files by name, held in memory. Looks up no names.
#[derive(Clone, Default)]
pub struct Memory {
    files: BTreeMap<PathBuf, Vec<u8>>,
}

impl Memory {
    /// No files.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file.
    #[must_use]
    pub fn with(mut self, path: impl Into<PathBuf>, content: impl Into<Vec<u8>>) -> Self {
        self.files.insert(path.into(), content.into());
        self
    }
}

/// Shows names alone: the content may hold secrets.
impl std::fmt::Debug for Memory {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_set().entries(self.files.keys()).finish()
    }
}

impl Sources for Memory {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        match self.files.get(path) {
            Some(bytes) if bytes.len() > MAX_FILE_BYTES => Err(io::ErrorKind::FileTooLarge.into()),
            Some(bytes) => Ok(bytes.clone()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn readable_by_others(&self, _path: &Path) -> Option<bool> {
        None
    }

    fn is_directory(&self, _path: &Path) -> bool {
        false
    }

    fn resolve(&self, _host: &str) -> io::Result<Vec<IpAddr>> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "names are not looked up here"))
    }
}
