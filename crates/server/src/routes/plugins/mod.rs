//! Plugins and their curators over HTTP.

mod curators;
mod fetch;
mod installed;
mod versions;
mod view;

use schemars::{JsonSchema, Schema, SchemaGenerator};

use super::call::Call;
use super::page::LIMIT;
use super::route::{Access, BodyKind, Route};
use super::table::{delete, get, patch, post, put};
use crate::registry::{Desk, Revoke};

/// A body that is a plugin's document itself.
struct Document;

impl JsonSchema for Document {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        toolyard_protocol::manifest::PluginDocument::schema_name()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        toolyard_protocol::manifest::PluginDocument::json_schema(generator)
    }
}

pub(super) fn routes() -> Vec<Route> {
    let mut routes = plugin_routes();
    routes.extend(version_routes());
    routes.extend(curator_routes());
    routes
}

fn plugin_routes() -> Vec<Route> {
    vec![
        post("/api/plugins", Access::Secret, "Submit a plugin: the body is its document", versions::submit)
            .takes::<Document>(BodyKind::Json)
            .gives::<view::OneVersion>(201)
            .once(),
        get("/api/plugins", Access::Either, "List plugins, and who vouches for them", installed::list)
            .asks(&[LIMIT, ("after", "Continue after this id: the `next` of the page before.")])
            .gives::<view::PluginList>(200),
        post("/api/plugins/sign", Access::Secret, "Sign a version as a curator", versions::sign)
            .takes::<versions::SignPlugin>(BodyKind::Json)
            .gives::<view::OneVersion>(200),
        post("/api/plugins/fetch", Access::Secret, "Read a plugin's document from an address", fetch::fetch)
            .takes::<fetch::FetchPlugin>(BodyKind::Json)
            .gives::<fetch::FetchedPlugin>(200),
        post(
            "/api/plugins/install",
            Access::Secret,
            "Install a plugin: the body is its document",
            installed::install_document,
        )
        .takes::<Document>(BodyKind::Json)
        .gives::<view::InstalledPlugin>(200),
        post("/api/plugins/revoke", Access::Secret, "Trust something no longer", installed::revoke)
            .takes::<Revoke>(BodyKind::Json)
            .gives::<view::RevocationView>(200),
        get("/api/plugins/revocations", Access::Secret, "List what was revoked", installed::revocations)
            .gives::<view::RevocationList>(200),
        get("/api/plugins/{plugin}", Access::Either, "Read about a plugin", installed::get)
            .gives::<view::OnePlugin>(200),
        post(
            "/api/plugins/{plugin}/install",
            Access::Secret,
            "Install a published version, or the newest",
            installed::install_published,
        )
        .takes::<installed::InstallPublished>(BodyKind::Json)
        .gives::<view::InstalledPlugin>(200),
        patch("/api/plugins/{plugin}", Access::Secret, "Switch a plugin off or on", installed::patch)
            .takes::<installed::PatchPlugin>(BodyKind::Json)
            .gives::<view::InstalledPlugin>(200),
        delete("/api/plugins/{plugin}", Access::Secret, "Take an installed plugin away", installed::delete),
    ]
}

fn version_routes() -> Vec<Route> {
    vec![
        get(
            "/api/plugins/{plugin}/versions/{version}",
            Access::Secret,
            "Read a version: its document and the audit's report",
            versions::get,
        )
        .gives::<view::OneVersion>(200),
        post(
            "/api/plugins/{plugin}/versions/{version}/review",
            Access::Secret,
            "Approve or reject a version",
            versions::review,
        )
        .takes::<versions::Review>(BodyKind::Json)
        .gives::<view::OneVersion>(200),
        post(
            "/api/plugins/{plugin}/versions/{version}/publish",
            Access::Secret,
            "Let a signed version be installed by its name",
            versions::publish,
        )
        .gives::<view::OneVersion>(200),
    ]
}

fn curator_routes() -> Vec<Route> {
    vec![
        get("/api/curators", Access::Either, "List who may sign plugins", curators::list)
            .gives::<curators::CuratorList>(200),
        get("/api/curators/{curator}", Access::Either, "Read a curator and its public keys", curators::get)
            .gives::<curators::OneCurator>(200),
        put("/api/curators/{curator}", Access::Secret, "Trust a curator for some plugins", curators::put)
            .takes::<curators::PutCurator>(BodyKind::Json)
            .gives::<curators::OneCurator>(200),
        delete("/api/curators/{curator}", Access::Secret, "Forget a curator and its keys", curators::delete),
        post(
            "/api/curators/{curator}/keys",
            Access::Secret,
            "Add a public key, or let the gateway make and hold a key",
            curators::add_key,
        )
        .takes::<curators::NewKey>(BodyKind::Json)
        .gives::<curators::OneCurator>(201),
    ]
}

fn desk(call: &Call) -> Desk {
    Desk { tenant: call.tenant().clone(), actor: call.actor(), rules: call.app.plugins.clone() }
}
