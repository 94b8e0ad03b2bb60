//! The part of the table about what agents keep: goals, memories, plans,
//! documents and notifications.

use super::page::{BEFORE, LIMIT};
use super::route::{Access, BodyKind, Route};
use super::table::{delete, get, patch, post};
use super::{goals, inbox, knowledge, memories, plans};

const ENTITY: (&str, &str) = ("entityId", "Whose (secret key); a user's own otherwise.");

pub(super) fn routes() -> Vec<Route> {
    let mut table = goal_routes();
    table.extend(memory_routes());
    table.extend(plan_routes());
    table.extend(knowledge_routes());
    table.extend(inbox_routes());
    table
}

fn goal_routes() -> Vec<Route> {
    vec![
        post("/api/goals", Access::Either, "Set a goal", goals::create)
            .takes::<goals::NewGoal>(BodyKind::Json)
            .gives::<goals::OneGoal>(201)
            .once(),
        get("/api/goals", Access::Either, "List goals; a user's own", goals::list)
            .asks(&[LIMIT, BEFORE, ENTITY])
            .gives::<goals::GoalList>(200),
        get("/api/goals/{goal}", Access::Either, "Read a goal", goals::get).gives::<goals::OneGoal>(200),
        patch("/api/goals/{goal}", Access::Either, "Change a goal", goals::patch)
            .takes::<goals::PatchGoal>(BodyKind::Json)
            .gives::<goals::OneGoal>(200),
        delete("/api/goals/{goal}", Access::Either, "Remove a goal", goals::delete),
    ]
}

fn memory_routes() -> Vec<Route> {
    vec![
        post("/api/memories", Access::Either, "Have an agent remember something", memories::create)
            .takes::<memories::NewMemory>(BodyKind::Json)
            .gives::<memories::OneMemory>(201)
            .once(),
        get("/api/memories", Access::Either, "List memories; those kept for a user", memories::list)
            .asks(&[
                LIMIT,
                BEFORE,
                ENTITY,
                ("agentEntityId", "Only memories of this agent."),
                ("topic", "Only memories of this topic."),
            ])
            .gives::<memories::MemoryList>(200),
        get("/api/memories/{memory}", Access::Either, "Read a memory", memories::get)
            .gives::<memories::OneMemory>(200),
        patch("/api/memories/{memory}", Access::Either, "Correct a memory", memories::patch)
            .takes::<memories::PatchMemory>(BodyKind::Json)
            .gives::<memories::OneMemory>(200),
        delete("/api/memories/{memory}", Access::Either, "Have something forgotten", memories::delete),
    ]
}

fn plan_routes() -> Vec<Route> {
    vec![
        post("/api/plans", Access::Either, "Plan a run for later", plans::create)
            .takes::<plans::NewPlan>(BodyKind::Json)
            .gives::<plans::OnePlan>(201)
            .once(),
        get("/api/plans", Access::Either, "List plans; a user's own", plans::list)
            .asks(&[LIMIT, BEFORE, ENTITY, ("status", "pending, completed, canceled or failed.")])
            .gives::<plans::PlanList>(200),
        get("/api/plans/{plan}", Access::Either, "Read a plan", plans::get).gives::<plans::OnePlan>(200),
        patch("/api/plans/{plan}", Access::Either, "Change or cancel a plan", plans::patch)
            .takes::<plans::PatchPlan>(BodyKind::Json)
            .gives::<plans::OnePlan>(200),
        delete("/api/plans/{plan}", Access::Either, "Remove a plan", plans::delete),
    ]
}

fn knowledge_routes() -> Vec<Route> {
    vec![
        post(
            "/api/knowledge",
            Access::Either,
            "Upload a document: JSON, or the document itself",
            knowledge::create,
        )
        .takes::<knowledge::NewDocument>(BodyKind::File)
        .asks(&[
            ("title", "If the body is the document itself."),
            ("smartSpaceId", "If the body is the document itself: only for agents in this space."),
        ])
        .gives::<knowledge::OneDocument>(201)
        .once(),
        get("/api/knowledge", Access::Either, "List documents; those of a user's spaces", knowledge::list)
            .asks(&[LIMIT, BEFORE, ("smartSpaceId", "Only documents of this space.")])
            .gives::<knowledge::DocumentList>(200),
        get("/api/knowledge/{document}", Access::Either, "Read how far a document is", knowledge::get)
            .gives::<knowledge::OneDocument>(200),
        delete("/api/knowledge/{document}", Access::Either, "Remove a document", knowledge::delete),
    ]
}

fn inbox_routes() -> Vec<Route> {
    vec![
        post("/api/inbox", Access::Secret, "Notify somebody", inbox::create)
            .takes::<inbox::NewNotice>(BodyKind::Json)
            .gives::<inbox::OneNotice>(201)
            .once(),
        get("/api/inbox", Access::Either, "List notifications; a user's own", inbox::list)
            .asks(&[LIMIT, BEFORE, ENTITY, ("unread", "true: only those that were not read.")])
            .gives::<inbox::NoticeList>(200),
        patch("/api/inbox/{notice}", Access::Either, "Mark a notification as read", inbox::patch)
            .takes::<inbox::PatchNotice>(BodyKind::Json)
            .gives::<inbox::OneNotice>(200),
        delete("/api/inbox/{notice}", Access::Either, "Remove a notification", inbox::delete),
    ]
}
