//! The files of the web app, as the build found them in `apps/chat/dist`.

include!(concat!(env!("OUT_DIR"), "/web_files.rs"));

/// A file by its path, and its short form if the build made one.
pub(super) fn find(path: &str) -> Option<&'static [u8]> {
    let at = FILES.binary_search_by(|(name, _)| (*name).cmp(path)).ok()?;
    FILES.get(at).map(|(_, bytes)| *bytes)
}
