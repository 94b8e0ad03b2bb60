//! One run of a story, and what workers and callers do to it.

use std::sync::Arc;

use toolyard_protocol::{CallId, Event, RunId, SpaceId, TenantId};
use toolyard_store::log::{Append, AppendError, Appended, FactAppended, Logged, Wake};
use toolyard_store::runs::{After, GaveUp, NewRun, Owner, RunRow};
use toolyard_store::waits::WaitRow;
use toolyard_store::{Store, StoreError, log, runs, waits};

use crate::cast;
use crate::home::Home;

#[derive(Clone)]
pub(crate) struct Line {
    pub(crate) store: Arc<Store>,
    pub(crate) run: NewRun,
}

/// What a fact asks for.
#[derive(Clone)]
pub(crate) enum Waking {
    No,
    Queue,
    Start(Owner),
}

impl Line {
    /// A run of its own tenant and, if named, space; with an owner it runs at
    /// once. Its log is empty.
    pub(crate) async fn begun(home: &Home, run: NewRun, owner: Option<&Owner>) -> Self {
        let (row, owner) = (run.clone(), owner.cloned());
        home.write(move |tx| Box::pin(async move { runs::insert(tx, &row, owner.as_ref()).await })).await;
        Self { store: home.store.clone(), run }
    }

    /// A run of `owner` with two events, that nobody disturbs.
    pub(crate) async fn running(home: &Home, space: Option<&SpaceId>, owner: &Owner) -> Self {
        let line = Self::begun(home, cast::new_run(&cast::tenant(), space), Some(owner)).await;
        let events = vec![cast::created(&line.run), cast::started()];
        line.append(owner, 1, 0, events, cast::going_on()).await.unwrap();
        line
    }

    /// A run that `owner` let go of: it waits for a client, at seq 5.
    pub(crate) async fn parked(home: &Home, space: Option<&SpaceId>, owner: &Owner) -> (Self, CallId) {
        let line = Self::running(home, space, owner).await;
        let call = CallId::mint();
        let events = vec![
            cast::replied(&line.run.id, 1, std::slice::from_ref(&call)),
            cast::client_call(&call),
            cast::paused(&call),
        ];
        line.append(owner, 1, 2, events, cast::parked()).await.unwrap();
        (line, call)
    }

    pub(crate) async fn append(
        &self,
        owner: &Owner,
        epoch: i64,
        expected: i64,
        events: Vec<Event>,
        after: After,
    ) -> Result<Appended, AppendError> {
        let (run, owner) = (self.run.clone(), owner.clone());
        self.store
            .write(move |tx| {
                Box::pin(async move {
                    let append = Append {
                        tenant: &run.tenant,
                        run: &run.id,
                        root: &run.root,
                        space: run.space.as_ref(),
                        child: false,
                        epoch,
                        owner: &owner,
                        expected,
                        events: &events.into(),
                        after: &after,
                        speaks: 0,
                    };
                    log::append(tx, &append).await
                })
            })
            .await
    }

    pub(crate) async fn fact(&self, events: Vec<Event>, waking: Waking) -> FactAppended {
        let (tenant, run) = (self.run.tenant.clone(), self.run.id.clone());
        self.store
            .write(move |tx| {
                Box::pin(async move {
                    let row = runs::lock(tx, &tenant, &run).await?.unwrap();
                    let wake = match &waking {
                        Waking::No => Wake::No,
                        Waking::Queue => Wake::Yes(None),
                        Waking::Start(owner) => Wake::Yes(Some(owner)),
                    };
                    log::append_fact(tx, &row, &events.into(), wake).await
                })
            })
            .await
            .map_err(|e: StoreError| e)
            .unwrap()
    }

    pub(crate) async fn hand_back(&self, epoch: i64, owner: &Owner) -> bool {
        let (tenant, run, owner) = (self.run.tenant.clone(), self.run.id.clone(), owner.clone());
        self.store
            .write(move |tx| Box::pin(async move { runs::hand_back(tx, &tenant, &run, epoch, &owner).await }))
            .await
            .map_err(|e: StoreError| e)
            .unwrap()
    }

    pub(crate) async fn give_up(&self, epoch: i64, owner: &Owner, why: GaveUp, retry_ms: u64) -> bool {
        let (tenant, run, owner) = (self.run.tenant.clone(), self.run.id.clone(), owner.clone());
        self.store
            .write(move |tx| {
                Box::pin(async move { runs::give_up(tx, &tenant, &run, epoch, &owner, why, retry_ms).await })
            })
            .await
            .map_err(|e: StoreError| e)
            .unwrap()
    }

    pub(crate) async fn park(&self, epoch: i64, owner: &Owner, seen: i64) -> bool {
        let after = cast::parked();
        let (tenant, run, owner) = (self.run.tenant.clone(), self.run.id.clone(), owner.clone());
        self.store
            .write(move |tx| {
                Box::pin(async move { runs::park(tx, &tenant, &run, epoch, &owner, seen, &after).await })
            })
            .await
            .map_err(|e: StoreError| e)
            .unwrap()
    }

    pub(crate) async fn row(&self) -> RunRow {
        let (tenant, run) = self.key();
        self.store
            .read(move |tx| Box::pin(async move { runs::get(tx, &tenant, &run).await }))
            .await
            .map_err(|e: StoreError| e)
            .unwrap()
            .unwrap()
    }

    pub(crate) async fn log(&self) -> Vec<Logged> {
        let (tenant, run) = self.key();
        self.store
            .read(move |tx| Box::pin(async move { log::read(tx, &tenant, &run, 0, 10_000).await }))
            .await
            .map_err(|e: StoreError| e)
            .unwrap()
    }

    /// The log's event types in order, with a check that seqs are dense.
    pub(crate) async fn kinds(&self) -> Vec<&'static str> {
        let log = self.log().await;
        let seqs: Vec<i64> = log.iter().map(|l| l.seq).collect();
        let dense: Vec<i64> = (1..).take(log.len()).collect();
        assert_eq!(seqs, dense, "seqs start at 1 and have no gap");
        log.iter().map(|l| l.event.kind()).collect()
    }

    pub(crate) async fn waits(&self) -> Vec<WaitRow> {
        let (tenant, run) = self.key();
        self.store
            .read(move |tx| Box::pin(async move { waits::of_run(tx, &tenant, &run).await }))
            .await
            .map_err(|e: StoreError| e)
            .unwrap()
    }

    pub(crate) async fn open_waits(&self) -> Vec<WaitRow> {
        let (tenant, run) = self.key();
        self.store
            .read(move |tx| Box::pin(async move { waits::open_of_run(tx, &tenant, &run).await }))
            .await
            .map_err(|e: StoreError| e)
            .unwrap()
    }

    fn key(&self) -> (TenantId, RunId) {
        (self.run.tenant.clone(), self.run.id.clone())
    }
}
