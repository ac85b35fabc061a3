//! Text that settings came from, and places in it.

use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

mod disk;
mod mask;
mod memory;

pub use disk::Disk;
pub use memory::Memory;

/// Largest file that is read, and the most of a configuration with all that it includes.
pub const MAX_FILE_BYTES: usize = 16 << 20;

/// Longest line of a printed excerpt; a longer one is named by its place alone.
const MAX_EXCERPT_BYTES: usize = 1000;

/// Where files come from. Reading is all that the pure core asks of the outside.
pub trait Sources {
    /// The whole content of a file.
    ///
    /// # Errors
    /// The file cannot be read, or is larger than [`MAX_FILE_BYTES`].
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// Whether users beyond owner and group may read the file; `None` if that cannot be told.
    fn readable_by_others(&self, path: &Path) -> Option<bool>;

    /// Whether a folder exists.
    fn is_directory(&self, path: &Path) -> bool;

    /// The addresses of a host name to listen on.
    ///
    /// # Errors
    /// The name has no address, or names are not looked up here.
    fn resolve(&self, host: &str) -> io::Result<Vec<std::net::IpAddr>>;
}

/// One file's text.
pub struct Source {
    path: PathBuf,
    text: String,
    line_starts: Vec<usize>,
}

impl Source {
    /// Text of the file at `path`.
    #[must_use]
    pub fn new(path: PathBuf, text: String) -> Self {
        let line_starts =
            std::iter::once(0).chain(text.match_indices('\n').map(|(offset, _)| offset + 1)).collect();
        Self { path, text, line_starts }
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Index of the line that holds `offset`.
    fn line_index(&self, offset: usize) -> usize {
        self.line_starts.partition_point(|&start| start <= offset).saturating_sub(1)
    }

    /// Bytes of a line without its end.
    fn line_range(&self, index: usize) -> Range<usize> {
        let start = self.line_starts[index];
        let end = self.line_starts.get(index + 1).map_or(self.text.len(), |&next| next - 1);
        let end = if self.text[start..end].ends_with('\r') { end - 1 } else { end };
        start..end
    }
}

/// Shows the path alone: the text may hold secrets.
impl fmt::Debug for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Source").field("path", &self.path).finish_non_exhaustive()
    }
}

/// A stretch of a file. Lines and columns count from 1; columns count characters.
#[derive(Clone, Debug)]
pub struct Place {
    source: Arc<Source>,
    start: usize,
    end: usize,
    is_hidden: bool,
}

impl Place {
    /// The bytes `range` of `source`, brought within it.
    #[must_use]
    pub fn new(source: &Arc<Source>, range: Range<usize>) -> Self {
        let text = source.text();
        let start = text.floor_char_boundary(range.start.min(text.len()));
        let end = text.ceil_char_boundary(range.end.clamp(start, text.len()));
        Self { source: Arc::clone(source), start, end, is_hidden: false }
    }

    /// The same place, whose line is never shown.
    pub(crate) fn without_excerpt(mut self) -> Self {
        self.is_hidden = true;
        self
    }

    /// The file.
    #[must_use]
    pub fn file(&self) -> &Path {
        self.source.path()
    }

    /// Line, from 1.
    #[must_use]
    pub fn line(&self) -> usize {
        self.source.line_index(self.start) + 1
    }

    /// Column in characters, from 1.
    #[must_use]
    pub fn column(&self) -> usize {
        let line = self.source.line_range(self.line() - 1);
        self.source.text[line.start..self.start].chars().count() + 1
    }

    /// The line with secrets masked, and the stretch's bytes in it. `None` if the line is very long or
    /// the whole file is secret.
    pub(crate) fn excerpt(&self) -> Option<(String, Range<usize>)> {
        let line = self.source.line_range(self.source.line_index(self.start));
        if self.is_hidden || line.len() > MAX_EXCERPT_BYTES || line.start > self.start {
            return None;
        }
        let text = mask::without_secrets(&self.source.text, line.clone());
        let within =
            |offset: usize| text.floor_char_boundary(offset.min(line.end).max(line.start) - line.start);
        let (start, end) = (within(self.start), within(self.end));
        Some((text, start..end))
    }
}
