//! The tools of MCP servers as somebody has seen them: a tool that changes is
//! asked about again.

use std::collections::BTreeMap;

use toolyard_protocol::{Hash, TenantId};

use crate::error::StoreError;
use crate::tx::{Tx, args};

/// (server, the server's name of the tool) → what it was.
pub type Pins = BTreeMap<(String, String), Hash>;

/// All pins of one server's tools.
pub async fn of_server(tx: &mut Tx<'_>, tenant: &TenantId, server: &str) -> Result<Pins, StoreError> {
    let rows = tx
        .all(
            "SELECT server, tool, pin FROM mcp_pins WHERE tenant = $1 AND server = $2",
            args![tenant.as_str(), server],
            |r| Ok(((r.text(0)?, r.text(1)?), r.parsed(2, |t| Hash::from_hex(t).ok_or("not a hash"))?)),
        )
        .await?;
    Ok(rows.into_iter().collect())
}

/// Remembers a tool as it is now.
pub async fn put(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    server: &str,
    tool: &str,
    pin: &Hash,
) -> Result<(), StoreError> {
    let now = tx.now().await?;
    tx.exec(
        "INSERT INTO mcp_pins (tenant, server, tool, pin, at) VALUES ($1, $2, $3, $4, $5) \
         ON CONFLICT (tenant, server, tool) DO UPDATE SET pin = excluded.pin, at = excluded.at",
        args![tenant.as_str(), server, tool, pin.as_str(), now],
    )
    .await?;
    Ok(())
}
