//! The server's settings file: kept, replaced, and put back.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};

use crate::Error;

/// Longest settings file.
pub(crate) const MOST_BYTES: u64 = 1 << 20;
/// What the last restart has kept: settings that the server has run with.
const KEPT: &str = "before-restart";

/// `postgresql.conf` of a server, and the text to go back to.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) file: PathBuf,
    pub(crate) former: String,
    /// What takes its place; none if it stands there already.
    pub(crate) fresh: Option<String>,
}

impl Settings {
    pub(crate) fn read(file: &Path, new: Option<&Path>, former: Option<&Path>) -> Result<Self, Error> {
        let kept = kept(file);
        let fresh = new.map(read).transpose()?;
        let former = match (new, former) {
            (_, Some(former)) => Some(read(former)?),
            (Some(_), None) => Some(read(file)?),
            (None, None) => disk::read_text(&kept, MOST_BYTES).map_err(Error::file(&kept))?,
        };
        let former = former.ok_or(Error::NoWayBack)?;
        Ok(Self { file: file.to_owned(), former, fresh })
    }

    /// The new text stands in its place; what the server has run with is kept beside it.
    pub(crate) fn install(&self) -> Result<(), Error> {
        replace(&kept(&self.file), &self.former, &self.file)?;
        self.fresh.as_ref().map_or(Ok(()), |fresh| replace(&self.file, fresh, &self.file))
    }

    /// The former text stands in its place.
    pub(crate) fn restore(&self) -> Result<(), Error> {
        replace(&self.file, &self.former, &self.file)
    }

    /// Undoes [`Self::install`] where nothing was restarted.
    pub(crate) fn take_back(&self) -> Result<(), Error> {
        if self.fresh.is_some() { self.restore() } else { Ok(()) }
    }

    /// What the server runs with now is what a later restart goes back to.
    pub(crate) fn keep(&self) -> Result<(), Error> {
        replace(&kept(&self.file), &read(&self.file)?, &self.file)
    }
}

fn kept(file: &Path) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(".");
    name.push(KEPT);
    file.with_file_name(name)
}

pub(crate) fn read(file: &Path) -> Result<String, Error> {
    let text = disk::read_text(file, MOST_BYTES).map_err(Error::file(file))?;
    text.ok_or_else(|| Error::File { file: file.to_owned(), source: std::io::ErrorKind::NotFound.into() })
}

/// Whole or not at all, with the owner and the rights of `like`.
pub(crate) fn replace(file: &Path, text: &str, like: &Path) -> Result<(), Error> {
    let about = fs::metadata(like).map_err(Error::file(like))?;
    disk::replace(file, text.as_bytes()).map_err(Error::file(file))?;
    let own = fs::metadata(file).map_err(Error::file(file))?;
    if (own.uid(), own.gid()) != (about.uid(), about.gid()) {
        chown(file, Some(about.uid()), Some(about.gid())).map_err(Error::file(file))?;
    }
    fs::set_permissions(file, fs::Permissions::from_mode(about.mode() & 0o7777)).map_err(Error::file(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_settings_stand_in_place_and_the_former_ones_come_back_whole() {
        let folder = tempfile::tempdir().unwrap();
        let (file, new) = (folder.path().join("postgresql.conf"), folder.path().join("new.conf"));
        fs::write(&file, "work_mem = 4MB\n").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        fs::write(&new, "work_mem = 8MB\n").unwrap();
        let settings = Settings::read(&file, Some(&new), None).unwrap();
        settings.install().unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "work_mem = 8MB\n");
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o7777, 0o640);
        settings.restore().unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "work_mem = 4MB\n");
    }

    #[test]
    fn without_former_settings_there_is_no_way_back_until_one_restart_has_kept_them() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("postgresql.conf");
        fs::write(&file, "a").unwrap();
        assert!(matches!(Settings::read(&file, None, None), Err(Error::NoWayBack)));
        Settings { file: file.clone(), former: "a".to_owned(), fresh: None }.keep().unwrap();
        fs::write(&file, "b").unwrap();
        assert_eq!(Settings::read(&file, None, None).unwrap().former, "a");
    }

    #[test]
    fn a_file_beyond_the_bound_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("postgresql.conf");
        fs::write(&file, vec![b'#'; usize::try_from(MOST_BYTES).unwrap() + 1]).unwrap();
        assert!(matches!(Settings::read(&file, Some(&file), None), Err(Error::File { .. })));
    }
}
