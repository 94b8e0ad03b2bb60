//! Dates and numbers as people write them.

use rquickjs::{Ctx, Object, Result};

pub(super) fn install<'js>(_ctx: &Ctx<'js>, _native: &Object<'js>) -> Result<()> {
    Ok(())
}
