//! The token keys whose secrets are here, and which of them signs: the one that the ring names.

use crate::reader::Book;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use store::ConfigError;
use store::config::read_text;
use tokio::time::sleep;
use trust::{KeyError, KeyId, KeyRing, MAX_KEYS, TokenKey};

/// How often the folder is looked at.
const LOOK: Duration = Duration::from_secs(5);
/// What the name of a key's file ends in.
const EXTENSION: &str = "key";
/// The most keys of a folder that are read: those of a full ring, and as many that have left it.
const MOST_FILES: usize = 2 * MAX_KEYS;

/// Where the secrets of token keys stand.
#[derive(Clone, Debug)]
pub struct TokenKeyFiles {
    /// One key: its seed in base64url.
    pub first: PathBuf,
    /// A folder with further ones, each in a file `….key`; it need not be there.
    pub folder: Option<PathBuf>,
}

impl TokenKeyFiles {
    /// All keys, the first one in front.
    ///
    /// # Errors
    /// The first cannot be used, or there are more than [`MAX_KEYS`] twice. Another one that cannot is left out, and said so.
    pub fn read(&self) -> Result<Vec<Arc<TokenKey>>, ConfigError> {
        let mut keys = vec![Arc::new(read_key(&self.first, TokenKey::from_seed)?)];
        for path in self.further()? {
            match read_key(&path, TokenKey::from_seed) {
                Ok(key) if keys.iter().all(|known| known.id() != key.id()) => keys.push(Arc::new(key)),
                Ok(_) => {}
                Err(error) => tracing::warn!(%error, "a token key cannot be used"),
            }
        }
        Ok(keys)
    }

    fn further(&self) -> Result<Vec<PathBuf>, ConfigError> {
        let Some(folder) = &self.folder else { return Ok(Vec::new()) };
        let failed = |error| ConfigError::Read { path: folder.clone(), error };
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(error)),
        };
        let mut paths = Vec::new();
        for entry in entries {
            let path = entry.map_err(failed)?.path();
            if path.extension().is_some_and(|extension| extension == EXTENSION) {
                paths.push(path);
            }
            if paths.len() > MOST_FILES {
                return Err(ConfigError::wrong(
                    folder,
                    format!("more than {MOST_FILES} keys: remove old ones"),
                ));
            }
        }
        paths.sort();
        Ok(paths)
    }
}

/// A key from its seed in base64url.
///
/// # Errors
/// The file cannot be read, or is no key.
pub fn read_key<K>(path: &Path, from_seed: impl Fn(&[u8]) -> Result<K, KeyError>) -> Result<K, ConfigError> {
    let text = read_text(path)?;
    let seed = BASE64_URL_SAFE_NO_PAD
        .decode(text.trim())
        .map_err(|_| ConfigError::wrong(path, "not a key in base64url"))?;
    from_seed(&seed).map_err(|error| ConfigError::wrong(path, error))
}

/// Signs with the key that the ring names, from the moment in which the ring is known here.
#[derive(Debug)]
pub struct Signer {
    files: TokenKeyFiles,
    book: Book,
    keys: RwLock<Vec<Arc<TokenKey>>>,
}

impl Signer {
    /// Reads the secrets.
    ///
    /// # Errors
    /// See [`TokenKeyFiles::read`].
    pub fn open(files: TokenKeyFiles, book: Book) -> Result<Self, ConfigError> {
        let keys = RwLock::new(files.read()?);
        Ok(Self { files, book, keys })
    }

    /// The key to sign with now. If the one that the ring names is not here, another one of the ring that verifiers still believe.
    #[must_use]
    pub fn key(&self) -> Option<Arc<TokenKey>> {
        choose(&self.book.known().ring, &self.held())
    }

    /// The first key, with which a network begins.
    #[must_use]
    pub fn first(&self) -> Option<Arc<TokenKey>> {
        self.held().first().cloned()
    }

    /// Names of the keys whose secrets are here.
    #[must_use]
    pub fn holds(&self) -> Vec<KeyId> {
        self.held().iter().map(|key| key.id()).collect()
    }

    /// Looks for new secrets again and again; never ends.
    pub async fn run(&self) {
        let mut said = None;
        loop {
            sleep(LOOK).await;
            match self.files.read() {
                Ok(keys) => *self.keys.write().unwrap_or_else(PoisonError::into_inner) = keys,
                // What was read before stays.
                Err(error) => tracing::warn!(%error, "the token keys cannot be read"),
            }
            let ring = &self.book.known().ring;
            let wanted = ring.signing().map(|key| key.id);
            let signs = self.key().map(|key| key.id());
            // Once for each ring.
            if wanted != signs && wanted.is_some() && said.replace(ring.number()) != Some(ring.number()) {
                tracing::error!(
                    wanted = wanted.map(tracing::field::display),
                    signs = signs.map(tracing::field::display),
                    "the secret of the key that is to sign is not here"
                );
            }
        }
    }

    fn held(&self) -> Vec<Arc<TokenKey>> {
        self.keys.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Never one that is only coming: there may be verifiers that do not know it yet.
fn choose(ring: &KeyRing, held: &[Arc<TokenKey>]) -> Option<Arc<TokenKey>> {
    let coming = ring.coming().map(|key| key.id);
    let with = |id: KeyId| held.iter().find(|key| key.id() == id).cloned();
    let fallback = || {
        let mut others: Vec<_> = ring.keys().iter().filter(|key| Some(key.id) != coming).collect();
        others.sort_by_key(|key| std::cmp::Reverse(key.since_s));
        others.into_iter().find_map(|key| with(key.id))
    };
    ring.signing().and_then(|key| with(key.id)).or_else(fallback)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reader;
    use store::DatabaseConfig;
    use trust::{KeyState, RingKey, RootKey};

    fn write(path: &Path, key: &TokenKey) {
        fs::write(path, BASE64_URL_SAFE_NO_PAD.encode(key.seed())).unwrap();
    }

    #[tokio::test]
    async fn the_ring_says_which_key_signs_and_one_that_is_only_coming_never_does() {
        let folder = tempfile::tempdir().unwrap();
        let (root, old, new) =
            (RootKey::generate().unwrap(), TokenKey::generate().unwrap(), TokenKey::generate().unwrap());
        let network = root.network();
        let files = TokenKeyFiles {
            first: folder.path().join("token.key"),
            folder: Some(folder.path().join("more")),
        };
        write(&files.first, &old);
        let store = DatabaseConfig::new("postgresql://a@127.0.0.1:1/b").open(network).unwrap();
        let book = Reader::open(store, network, None).unwrap().book();
        let signer = Signer::open(files, book.clone()).unwrap();
        assert!(signer.key().is_none(), "no ring, no key that anybody would believe");
        let first = RingKey::new(*old.public_key(), KeyState::Signing);
        let ring = KeyRing::new(network, 1, 0, vec![first]).unwrap();
        book.take_ring(&ring.sign(&root).unwrap()).unwrap();
        assert_eq!(signer.key().unwrap().id(), old.id());
        let ring = ring.with_coming(*new.public_key(), 10).unwrap();
        book.take_ring(&ring.sign(&root).unwrap()).unwrap();
        fs::create_dir(folder.path().join("more")).unwrap();
        write(&folder.path().join("more/new.key"), &new);
        fs::write(folder.path().join("more/broken.key"), "x").unwrap();
        fs::write(folder.path().join("more/notes.txt"), "x").unwrap();
        *signer.keys.write().unwrap() = signer.files.read().unwrap();
        assert_eq!(signer.holds(), [old.id(), new.id()]);
        assert_eq!(signer.key().unwrap().id(), old.id(), "it is only coming");
        let ring = ring.switched(20).unwrap();
        book.take_ring(&ring.sign(&root).unwrap()).unwrap();
        assert_eq!(signer.key().unwrap().id(), new.id());
        // Without the new secret, the old key is still believed.
        let alone = [Arc::new(TokenKey::from_seed(old.seed()).unwrap())];
        assert_eq!(choose(&ring, &alone).unwrap().id(), old.id());
        let stranger = [Arc::new(TokenKey::generate().unwrap())];
        assert!(choose(&ring, &stranger).is_none());
    }
}
