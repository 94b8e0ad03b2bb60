//! Every native route, once.

use axum::http::Method;
use toolyard_dialects::native::socket;

use super::page::{BEFORE, LIMIT};
use super::route::{Access, BodyKind, Route};
use super::{
    a2a, agents, audit, chat, clients, entities, files, foreign, grants, kept, keys, logins, mcp, members,
    messages, models, ops, plugins, progress, results, runs, secrets, selection, session, spaces, tools,
    waits, webhooks,
};

/// The table. The router, the OpenAPI document and the access tests read it.
pub(crate) fn table() -> Vec<Route> {
    let mut table = operations();
    table.extend(agent_routes());
    table.extend(entity_routes());
    table.extend(space_routes());
    table.extend(conversation_routes());
    table.extend(chat::routes());
    table.extend(run_routes());
    table.extend(wait_routes());
    table.extend(permission_routes());
    table.extend(outside_routes());
    table.extend(file_and_client_routes());
    table.extend(kept::routes());
    table.extend(plugins::routes());
    table.extend(foreign::routes());
    table.extend(a2a::routes());
    table
}

pub(super) fn get<F, R>(path: &'static str, access: Access, summary: &'static str, handler: F) -> Route
where
    F: Fn(super::call::Call) -> R + Send + Sync + 'static,
    R: Future<Output = Result<axum::response::Response, crate::http::Refusal>> + Send + 'static,
{
    Route::keyed(Method::GET, path, access, summary, handler)
}

pub(super) fn post<F, R>(path: &'static str, access: Access, summary: &'static str, handler: F) -> Route
where
    F: Fn(super::call::Call) -> R + Send + Sync + 'static,
    R: Future<Output = Result<axum::response::Response, crate::http::Refusal>> + Send + 'static,
{
    Route::keyed(Method::POST, path, access, summary, handler)
}

pub(super) fn patch<F, R>(path: &'static str, access: Access, summary: &'static str, handler: F) -> Route
where
    F: Fn(super::call::Call) -> R + Send + Sync + 'static,
    R: Future<Output = Result<axum::response::Response, crate::http::Refusal>> + Send + 'static,
{
    Route::keyed(Method::PATCH, path, access, summary, handler)
}

pub(super) fn put<F, R>(path: &'static str, access: Access, summary: &'static str, handler: F) -> Route
where
    F: Fn(super::call::Call) -> R + Send + Sync + 'static,
    R: Future<Output = Result<axum::response::Response, crate::http::Refusal>> + Send + 'static,
{
    Route::keyed(Method::PUT, path, access, summary, handler)
}

pub(super) fn delete<F, R>(path: &'static str, access: Access, summary: &'static str, handler: F) -> Route
where
    F: Fn(super::call::Call) -> R + Send + Sync + 'static,
    R: Future<Output = Result<axum::response::Response, crate::http::Refusal>> + Send + 'static,
{
    Route::keyed(Method::DELETE, path, access, summary, handler).gives_nothing()
}

fn operations() -> Vec<Route> {
    vec![
        Route::open("/health", "Is the process up", ops::health).gives::<ops::Health>(200),
        Route::open("/ready", "Does the database answer", ops::ready).gives::<ops::Health>(200),
        Route::open("/metrics", "Counters for Prometheus", ops::metrics).local().media("text/plain"),
        get("/api/doctor", Access::Secret, "Look for trouble, with the operator's key", ops::doctor)
            .gives::<ops::Checkup>(200),
        Route::knocked("/api/session", "Give the web app its key", session::create)
            .takes::<session::NewSession>(BodyKind::Json)
            .gives::<session::Session>(201),
        Route::open("/api/openapi.json", "This document", ops::document).gives::<serde_json::Value>(200),
    ]
}

fn agent_routes() -> Vec<Route> {
    vec![
        post("/api/agents", Access::Secret, "Store an agent by its name", agents::put)
            .takes::<agents::PutAgent>(BodyKind::Json)
            .gives::<agents::AgentPut>(200)
            .once(),
        get("/api/agents", Access::Secret, "List agents", agents::list)
            .asks(&[LIMIT, ("after", "Continue after this name: the `next` of the page before.")])
            .gives::<agents::AgentList>(200),
        get("/api/agents/{agent}", Access::Secret, "Read an agent, by id or name", agents::get)
            .gives::<agents::OneAgent>(200),
        delete("/api/agents/{agent}", Access::Secret, "Remove an agent", agents::delete),
        get(
            "/api/tools",
            Access::Either,
            "List the tools that an agent has now, and how their calls went",
            tools::list,
        )
        .asks(&[
            ("agent", "Its name or id; missing means the default agent."),
            ("category", "Only tools of this category."),
            ("entityId", "For whom (secret key): servers may tell each user other tools."),
        ])
        .gives::<tools::ToolList>(200),
        get("/api/models", Access::Either, "List the models that may be named", models::list)
            .gives::<models::ModelList>(200),
    ]
}

fn entity_routes() -> Vec<Route> {
    vec![
        post("/api/entities", Access::Secret, "Create an entity", entities::create)
            .takes::<entities::NewEntity>(BodyKind::Json)
            .gives::<entities::OneEntity>(201)
            .once(),
        post(
            "/api/entities/agent",
            Access::Secret,
            "Create an entity that plays an agent",
            entities::create_agent,
        )
        .takes::<entities::NewAgentEntity>(BodyKind::Json)
        .gives::<entities::OneEntity>(201)
        .once(),
        get("/api/entities", Access::Secret, "List entities", entities::list)
            .asks(&[
                LIMIT,
                BEFORE,
                ("type", "human, agent or system."),
                ("externalId", "The one entity of this externalId, or none."),
            ])
            .gives::<entities::EntityList>(200),
        get("/api/entities/{entity}", Access::Secret, "Read an entity", entities::get)
            .gives::<entities::OneEntity>(200),
        patch("/api/entities/{entity}", Access::Secret, "Change an entity", entities::patch)
            .takes::<entities::PatchEntity>(BodyKind::Json)
            .gives::<entities::OneEntity>(200),
        delete("/api/entities/{entity}", Access::Secret, "Remove an entity and all of it", entities::delete),
        get(
            "/api/entities/{entity}/export",
            Access::Secret,
            "Read everything that is stored of an entity, a line of JSON for each row",
            entities::export,
        )
        .media("application/x-ndjson"),
        get(
            "/api/entities/{entity}/stream",
            Access::Either,
            "Follow all spaces of an entity; a user's own",
            entities::stream,
        )
        .asks(&[("since", "Continue after this id of the stream; `Last-Event-ID` wins.")])
        .media("text/event-stream"),
    ]
}

fn space_routes() -> Vec<Route> {
    vec![
        post("/api/smart-spaces", Access::Secret, "Create a space", spaces::create)
            .takes::<spaces::NewSpace>(BodyKind::Json)
            .gives::<spaces::OneSpace>(201)
            .once(),
        get("/api/smart-spaces", Access::Either, "List spaces; a user's own", spaces::list)
            .asks(&[LIMIT, BEFORE, ("entityId", "Only spaces of this member (secret key).")])
            .gives::<spaces::SpaceList>(200),
        get("/api/smart-spaces/{space}", Access::Member, "Read a space", spaces::get)
            .gives::<spaces::OneSpace>(200),
        patch("/api/smart-spaces/{space}", Access::Secret, "Change a space", spaces::patch)
            .takes::<spaces::PatchSpace>(BodyKind::Json)
            .gives::<spaces::OneSpace>(200),
        delete("/api/smart-spaces/{space}", Access::Secret, "Remove a space and all of it", spaces::delete),
        post(
            "/api/smart-spaces/{space}/members",
            Access::Secret,
            "Add a member, or change its role",
            members::put,
        )
        .takes::<members::NewMember>(BodyKind::Json)
        .gives::<members::OneMember>(201)
        .once(),
        get("/api/smart-spaces/{space}/members", Access::Member, "List members", members::list)
            .gives::<members::MemberList>(200),
        delete(
            "/api/smart-spaces/{space}/members/{entity}",
            Access::Secret,
            "Remove a member",
            members::delete,
        ),
        get(
            "/api/smart-spaces/{space}/tool-selection",
            Access::Member,
            "Read which tools a member picked",
            selection::get,
        )
        .asks(&[("entityId", "Whose (secret key).")])
        .gives::<selection::SelectionView>(200),
        put(
            "/api/smart-spaces/{space}/tool-selection",
            Access::Member,
            "Pick tools, for runs that start from now on",
            selection::put,
        )
        .takes::<selection::NewSelection>(BodyKind::Json)
        .gives::<selection::SelectionView>(200),
    ]
}

const STREAM: &[(&str, &str)] = &[
    ("afterSeq", "Continue after this position; `Last-Event-ID` wins."),
    ("since", "Another name of afterSeq."),
];

fn conversation_routes() -> Vec<Route> {
    vec![
        get("/api/smart-spaces/{space}/messages", Access::Member, "Read messages", messages::list)
            .asks(&[
                LIMIT,
                ("afterSeq", "Messages after this position, upwards."),
                ("beforeSeq", "Messages before this position: the newest of them."),
                (
                    "branch",
                    "`current`: only the line that the space goes on with. All of it, or a page if `limit` or `beforeSeq` is given.",
                ),
            ])
            .gives::<messages::MessageList>(200),
        post("/api/smart-spaces/{space}/messages", Access::Member, "Post a message", messages::post)
            .takes::<messages::NewMessage>(BodyKind::Conversation)
            .gives::<messages::MessagePosted>(201)
            .or_streams()
            .finds()
            .once(),
        get("/api/smart-spaces/{space}/runs", Access::Member, "List the runs of a space", runs::of_space)
            .asks(&[LIMIT, BEFORE, ("status", "Only runs with this status.")])
            .gives::<runs::RunList>(200),
        get("/api/smart-spaces/{space}/stream", Access::Member, "Follow a space", runs::stream_space)
            .asks(STREAM)
            .media("text/event-stream"),
        post(
            "/api/smart-spaces/{space}/tool-results",
            Access::Member,
            "Hand in a tool result",
            results::for_space,
        )
        .takes::<results::SpaceResults>(BodyKind::Results)
        .gives::<results::ResultsTaken>(200),
    ]
}

fn run_routes() -> Vec<Route> {
    vec![
        post("/api/runs", Access::Secret, "Start a run on what a space says", runs::create)
            .takes::<runs::NewRun>(BodyKind::Json)
            .gives::<runs::RunCreated>(201)
            .once(),
        get("/api/runs", Access::Secret, "List runs", runs::list)
            .asks(&[
                LIMIT,
                BEFORE,
                ("smartSpaceId", "Only runs of this space."),
                ("status", "Only runs with this status."),
            ])
            .gives::<runs::RunList>(200),
        get("/api/runs/{run}", Access::Member, "Read a run", runs::get).gives::<runs::OneRun>(200),
        delete("/api/runs/{run}", Access::Secret, "Remove a run that has ended", runs::delete),
        get("/api/runs/{run}/events", Access::Member, "Read the log of a run", runs::events)
            .asks(&[LIMIT, ("afterSeq", "Events after this position.")])
            .gives::<runs::EventList>(200),
        get("/api/runs/{run}/stream", Access::Member, "Follow a run", runs::stream)
            .asks(STREAM)
            .media("text/event-stream"),
        post("/api/runs/{run}/tool-results", Access::Member, "Hand in a tool result", results::for_run)
            .takes::<results::RunResults>(BodyKind::Results)
            .gives::<results::ResultsTaken>(200)
            .finds(),
        get("/api/runs/{run}/results/{call}", Access::Member, "Read the whole of a result", results::read)
            .asks(&[
                ("offset", "Characters of its JSON text to leave out: a piece is answered as an object."),
                ("limit", "Characters of that piece: 12000 if missing, at most 100000."),
            ])
            .gives::<serde_json::Value>(200),
        post(
            "/api/runs/{run}/tool-progress",
            Access::Member,
            "Tell how far a client's tool is",
            progress::for_run,
        )
        .takes::<socket::CallProgress>(BodyKind::Json)
        .gives::<socket::ProgressAccepted>(200),
        post(
            "/api/runs/{run}/replay",
            Access::Member,
            "Start a run from a step of another one",
            runs::replay,
        )
        .takes::<runs::ReplayRun>(BodyKind::Json)
        .gives::<runs::RunCreated>(201)
        .once(),
        post("/api/runs/{run}/cancel", Access::Secret, "Stop a run", runs::cancel)
            .takes::<runs::CancelRun>(BodyKind::Json)
            .gives::<runs::Canceling>(200),
    ]
}

fn wait_routes() -> Vec<Route> {
    const AFTER: (&str, &str) = ("after", "Continue after this row: the `next` of the page before.");
    const OPEN: &[(&str, &str)] =
        &[LIMIT, AFTER, ("runId", "Only waits of this run."), ("smartSpaceId", "Only waits of this space.")];
    vec![
        get("/api/waits", Access::Either, "List what runs wait for", waits::list)
            .asks(&[
                LIMIT,
                AFTER,
                ("runId", "Only waits of this run."),
                ("smartSpaceId", "Only waits of this space."),
                ("kind", "client, approval, input, credential, child or timer."),
            ])
            .gives::<waits::WaitList>(200),
        get("/api/pending-calls", Access::Either, "List calls that wait for a client", waits::pending_calls)
            .asks(OPEN)
            .gives::<waits::WaitList>(200),
        get("/api/approvals", Access::Either, "List calls that wait for a yes or no", waits::approvals)
            .asks(OPEN)
            .gives::<waits::WaitList>(200),
        post("/api/waits/{wait}/claim", Access::Either, "Say \"mine\" for a minute", waits::claim)
            .takes::<waits::ClaimWait>(BodyKind::Json)
            .gives::<waits::Claimed>(200),
        post("/api/waits/{wait}/answer", Access::Either, "Answer a wait", waits::answer)
            .takes::<waits::AnswerWait>(BodyKind::Results)
            .gives::<waits::Answered>(200),
    ]
}

fn permission_routes() -> Vec<Route> {
    vec![
        post("/api/grants", Access::Secret, "Remember a permission", grants::create)
            .takes::<grants::NewGrant>(BodyKind::Json)
            .gives::<grants::OneGrant>(201)
            .once(),
        get("/api/grants", Access::Either, "List permissions", grants::list)
            .asks(&[LIMIT])
            .gives::<grants::GrantList>(200),
        delete("/api/grants/{grant}", Access::Either, "Take a permission back", grants::delete),
        get("/api/audit", Access::Secret, "Who did what", audit::list)
            .asks(&[LIMIT, BEFORE])
            .gives::<audit::AuditPage>(200),
        post("/api/keys", Access::Secret, "Make a key", keys::create)
            .takes::<keys::NewKey>(BodyKind::Json)
            .gives::<keys::KeyMade>(201),
        get("/api/keys", Access::Secret, "List keys", keys::list)
            .asks(&[("tenant", "Keys of this tenant; the operator's key sees all.")])
            .gives::<keys::KeyList>(200),
        delete("/api/keys/{key}", Access::Secret, "Revoke a key", keys::revoke)
            .asks(&[("tenant", "The tenant of the key, for the operator's key.")]),
        delete(
            "/api/tenants/{tenant}",
            Access::Secret,
            "Remove a tenant and all of it, with the operator's key",
            keys::remove_tenant,
        ),
    ]
}

const LOGIN: &[(&str, &str)] = &[
    ("agentId", "The agent whose server it is, by id or name. Missing means the operator's."),
    ("entityId", "Whose login (secret key)."),
];

fn outside_routes() -> Vec<Route> {
    vec![
        get("/api/mcp/servers", Access::Secret, "See how the MCP servers are", mcp::list)
            .gives::<mcp::ServerList>(200),
        post(
            "/api/mcp/servers/{server}/refresh",
            Access::Secret,
            "Read the tools of the operator's MCP server again",
            mcp::refresh,
        )
        .gives::<mcp::ServerList>(200),
        post("/api/mcp/servers/{server}/login", Access::Either, "Log in at an MCP server", logins::begin)
            .takes::<logins::NewLogin>(BodyKind::Json)
            .gives::<logins::LoginBegun>(200),
        get(
            "/api/mcp/servers/{server}/login",
            Access::Either,
            "See whether a user is logged in",
            logins::get,
        )
        .asks(LOGIN)
        .gives::<logins::LoginView>(200),
        delete("/api/mcp/servers/{server}/login", Access::Either, "Log out at an MCP server", logins::end)
            .asks(LOGIN),
        Route::visited("/api/mcp/callback", "Where a login at an MCP server comes back to", logins::callback)
            .asks(&[
                ("state", "Which login."),
                ("code", "What the server gave for it."),
                ("iss", "Who gave it."),
                ("error", "Why there is none."),
            ])
            .media("text/html"),
        put("/api/secrets/{secret}", Access::Secret, "Keep a secret, or another value of it", secrets::put)
            .takes::<secrets::PutSecret>(BodyKind::Json)
            .gives::<secrets::SecretPut>(200),
        get("/api/secrets", Access::Secret, "List the names of secrets", secrets::list)
            .asks(&[LIMIT, ("after", "Continue after this name: the `next` of the page before.")])
            .gives::<secrets::SecretList>(200),
        delete("/api/secrets/{secret}", Access::Secret, "Forget a secret", secrets::delete),
        post("/api/webhooks", Access::Secret, "Tell an address of runs", webhooks::create)
            .takes::<webhooks::NewWebhook>(BodyKind::Json)
            .gives::<webhooks::WebhookMade>(201),
        get("/api/webhooks", Access::Secret, "List webhooks and how deliveries go", webhooks::list)
            .gives::<webhooks::WebhookList>(200),
        delete("/api/webhooks/{webhook}", Access::Secret, "Tell an address nothing more", webhooks::delete),
    ]
}

fn file_and_client_routes() -> Vec<Route> {
    vec![
        post("/api/files", Access::Either, "Upload a file: the body is the file", files::create)
            .takes_bytes()
            .gives::<files::OneFile>(201)
            .once(),
        get("/api/files/{file}", Access::Signed, "Download a file", files::get)
            .asks(&[
                ("tenant", "Of a signed address."),
                ("expires", "Of a signed address."),
                ("signature", "Of a signed address."),
            ])
            .media("application/octet-stream"),
        post("/api/clients/register", Access::Either, "Say who executes tools", clients::register)
            .takes::<clients::NewClient>(BodyKind::Json)
            .gives::<clients::Registered>(200),
        Route::socket::<socket::ClientMessage, socket::GatewayMessage>(
            "/api/clients/connect",
            "Take calls and give results on a WebSocket",
            |app, parts| Box::pin(crate::socket::connect(app, parts)),
        ),
        get("/api/clients", Access::Secret, "List clients", clients::list)
            .asks(&[LIMIT])
            .gives::<clients::ClientList>(200),
    ]
}
