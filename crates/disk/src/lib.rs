//! Files of our own: replaced whole or not at all, readable by their owner alone, read up to a bound.
//!
//! A process may be killed, and a machine lose its power, at any moment: a file is the old one or the new one, never a part.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Puts `bytes` in the place of a file, or makes it; mode 0600, and on the disk when this returns. Beside it stands `NAME.new`
/// meanwhile; one process at a time may do so.
///
/// # Errors
/// The system's; the old file is then untouched.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let fresh = beside(path);
    // One that was left half written has the rights of whoever left it.
    match fs::remove_file(&fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(&fresh)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&fresh, path)?;
    sync_folder(path)
}

/// The text of a file; `None` if there is none.
///
/// # Errors
/// The system's; [`io::ErrorKind::FileTooLarge`] beyond `most_bytes`, [`io::ErrorKind::InvalidData`] if it is not UTF-8.
pub fn read_text(path: &Path, most_bytes: u64) -> io::Result<Option<String>> {
    let read = read(path, most_bytes)?;
    read.map(|bytes| String::from_utf8(bytes).map_err(|_| io::ErrorKind::InvalidData.into())).transpose()
}

/// The bytes of a file; `None` if there is none.
///
/// # Errors
/// The system's; [`io::ErrorKind::FileTooLarge`] beyond `most_bytes`.
pub fn read(path: &Path, most_bytes: u64) -> io::Result<Option<Vec<u8>>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    // It may grow while it is read.
    file.take(most_bytes.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most_bytes {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(Some(bytes))
}

/// Makes a folder that only its owner may enter, and those above it. One that is there stays as it is.
///
/// # Errors
/// The system's.
pub fn private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Removes a file; that it is gone already is no error.
///
/// # Errors
/// The system's.
pub fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// A name in a folder is on the disk only once the folder is.
///
/// # Errors
/// The system's.
pub fn sync_folder(of: &Path) -> io::Result<()> {
    let folder = of.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or_else(|| Path::new(".")))?.sync_all()
}

fn beside(path: &Path) -> PathBuf {
    let mut name: OsString = path.as_os_str().to_owned();
    name.push(".new");
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_file_is_replaced_whole_and_is_its_owners_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b");
        private_folder(path.parent().unwrap()).unwrap();
        assert_eq!(read_text(&path, 10).unwrap(), None);
        // What a killed process left half written, for everybody to read.
        fs::write(folder.path().join("a/b.new"), "half").unwrap();
        replace(&path, b"one").unwrap();
        replace(&path, b"two").unwrap();
        assert_eq!(read_text(&path, 3).unwrap().as_deref(), Some("two"));
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_beyond_the_bound_is_refused_and_one_that_cannot_be_replaced_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        replace(&path, b"four").unwrap();
        assert_eq!(read(&path, 3).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        replace(&path, &[0xff]).unwrap();
        assert_eq!(read_text(&path, 3).unwrap_err().kind(), io::ErrorKind::InvalidData);
        // In the way of the fresh one.
        fs::create_dir(folder.path().join("file.new")).unwrap();
        assert!(replace(&path, b"other").is_err());
        assert_eq!(read(&path, 3).unwrap().unwrap(), [0xff]);
        remove(&path).unwrap();
        remove(&path).unwrap();
        assert_eq!(read(&path, 3).unwrap(), None);
    }
}
