//! The budget: how large a schema is once its references are followed.
//!
//! Size, depth and cycle checks on the text miss the schema that matters: 28 definitions, each
//! `allOf` of two references to the next, are 2 KB, shallow, without a cycle, and 2^28 checks of
//! one value. So nodes are counted as paths through the graph of references.

use crate::error::SchemaError;
use crate::limits::{ABSOLUTE_DEPTH, Limits, MAX_NODES};
use crate::tree::{NodeId, Part, Reach, Tree};

/// What a schema costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Survey {
    /// Subschemas, counted as paths.
    pub nodes: u64,
    /// Steps to check one small value against all of them.
    pub work: u64,
    /// The schema contains itself, so the arguments decide how often a subschema is visited.
    pub recursive: bool,
}

pub(crate) fn survey(tree: &Tree, limits: &Limits) -> Result<Survey, SchemaError> {
    refuse_cycles(tree)?;
    let mut surveyor = Surveyor { tree, state: vec![State::New; tree.nodes.len()], recursive: false };
    let extent = surveyor.visit(tree.root, 1)?;
    let max_depth = limits.max_depth.min(ABSOLUTE_DEPTH);
    if extent.depth > max_depth {
        return Err(SchemaError::TooDeep { limit: max_depth });
    }
    if extent.nodes > MAX_NODES {
        return Err(SchemaError::TooManyNodes);
    }
    Ok(Survey { nodes: extent.nodes, work: extent.work, recursive: surveyor.recursive })
}

/// A cycle that never moves to a smaller value would make a check endless.
///
/// A search of its own: the one below also follows properties and items, and would not see every
/// such cycle. Without recursion, since a chain of references can be long.
fn refuse_cycles(tree: &Tree) -> Result<(), SchemaError> {
    let standing = |id: NodeId| -> Vec<NodeId> {
        let children = tree.parts(id).iter().flat_map(Part::children);
        children.filter_map(|(reach, child)| (reach != Reach::Inside).then_some(child)).collect()
    };
    let mut color = vec![Color::White; tree.nodes.len()];
    for start in 0..tree.nodes.len() {
        let mut stack = vec![(start, None)];
        while let Some((id, pending)) = stack.pop() {
            let Some(seen) = color.get_mut(id) else {
                continue;
            };
            let mut pending: Vec<NodeId> = match pending {
                Some(pending) => pending,
                None => match *seen {
                    Color::Black => continue,
                    Color::Gray => return Err(SchemaError::RefCycle),
                    Color::White => standing(id),
                },
            };
            match pending.pop() {
                Some(next) => {
                    *seen = Color::Gray;
                    stack.push((id, Some(pending)));
                    stack.push((next, None));
                }
                None => *seen = Color::Black,
            }
        }
    }
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Color {
    White,
    Gray,
    Black,
}

#[derive(Debug, Clone, Copy)]
enum State {
    New,
    Open,
    Done(Extent),
}

/// What hangs below a node, itself included.
#[derive(Debug, Clone, Copy)]
struct Extent {
    nodes: u64,
    work: u64,
    depth: usize,
    /// Like `depth`, but a reference is a step too.
    steps: usize,
}

impl Extent {
    const LEAF: Self = Self { nodes: 1, work: 1, depth: 0, steps: 0 };
}

struct Surveyor<'t> {
    tree: &'t Tree,
    state: Vec<State>,
    recursive: bool,
}

impl Surveyor<'_> {
    /// `step` is the length of the path that leads here; it also bounds this recursion.
    fn visit(&mut self, id: NodeId, step: usize) -> Result<Extent, SchemaError> {
        let parts = self.tree.parts(id);
        if parts.is_empty() {
            // `true`, `false` and `{}` have nothing below them; the booleans are no level either.
            let level = usize::from(id > crate::tree::NEVER);
            return Ok(Extent { depth: level, steps: level, ..Extent::LEAF });
        }
        if step > ABSOLUTE_DEPTH {
            return Err(SchemaError::PathTooLong);
        }
        match self.state.get(id) {
            Some(State::Done(extent)) => {
                if step + extent.steps - 1 > ABSOLUTE_DEPTH {
                    return Err(SchemaError::PathTooLong);
                }
                return Ok(*extent);
            }
            // Back at a node above: here the paths repeat, and the meter takes over at check time.
            Some(State::Open) => {
                self.recursive = true;
                return Ok(Extent::LEAF);
            }
            Some(State::New) | None => {}
        }
        self.mark(id, State::Open);
        let extent = self.add_up(parts, step)?;
        self.mark(id, State::Done(extent));
        Ok(extent)
    }

    fn add_up(&mut self, parts: &[Part], step: usize) -> Result<Extent, SchemaError> {
        let mut sum = Extent { nodes: 1, work: 1, depth: 1, steps: 1 };
        // `unevaluated…` asks every neighbour a second time what it has looked at.
        let times = if unevaluated(parts) { 2 } else { 1 };
        for part in parts {
            sum.work = sum.work.saturating_add(part.price());
            for (reach, child) in part.children() {
                let below = self.visit(child, step + 1)?;
                sum.nodes = sum.nodes.saturating_add(below.nodes.saturating_mul(times));
                sum.work = sum.work.saturating_add(below.work.saturating_mul(times));
                let level = usize::from(reach != Reach::Ref);
                sum.depth = sum.depth.max(below.depth + level);
                sum.steps = sum.steps.max(below.steps + 1);
            }
        }
        Ok(sum)
    }

    fn mark(&mut self, id: NodeId, state: State) {
        if let Some(slot) = self.state.get_mut(id) {
            *slot = state;
        }
    }
}

pub(crate) fn unevaluated(parts: &[Part]) -> bool {
    parts.iter().any(|part| matches!(part, Part::Unevaluated { .. }))
}
