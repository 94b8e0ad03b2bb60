//! A test build's disk: as small as the file says that `TOOLYARD_SQLITE_PAGES`
//! names, in database pages. The file may change while the process runs, as a
//! disk does that fills up and is cleared. Row D12.

use std::ffi::OsString;
use std::sync::OnceLock;

use rusqlite::Connection;

/// As good as no limit; it is also SQLite's own.
const ENDLESS: u32 = 4_294_967_294;

/// Bounds what the next group may write. SQLite takes no bound below the
/// present size, so a file with `1` means: not a page more.
pub(super) fn bound(conn: &Connection) {
    static FILE: OnceLock<Option<OsString>> = OnceLock::new();
    let Some(file) = FILE.get_or_init(|| std::env::var_os("TOOLYARD_SQLITE_PAGES")) else { return };
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let pages: u32 = text.trim().parse().unwrap_or(ENDLESS);
    let _ = conn.pragma_update(None, "max_page_count", pages);
}
