//! Joins what was found by words with what was found by meaning.

/// Reciprocal rank fusion: a piece that is high in either list, or in both, is
/// high in the result. 60 is the usual constant; it keeps the first places from
/// outweighing everything.
const CALM: f64 = 60.0;

/// The best rows of several lists, each with the best first, and their scores.
pub(crate) fn fuse(lists: &[Vec<i64>], most: usize) -> Vec<(i64, f64)> {
    let mut scores: Vec<(i64, f64)> = Vec::new();
    for list in lists {
        for (rank, row) in (1u32..).zip(list) {
            let score = 1.0 / (CALM + f64::from(rank));
            match scores.iter_mut().find(|(known, _)| known == row) {
                Some((_, sum)) => *sum += score,
                None => scores.push((*row, score)),
            }
        }
    }
    scores.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    scores.truncate(most);
    scores
}

/// A vector as bytes, of length one: then a product of two is their cosine.
pub(crate) fn pack(vector: &[f32]) -> Vec<u8> {
    let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    let scale = if length > 0.0 { 1.0 / length } else { 0.0 };
    vector.iter().flat_map(|x| (x * scale).to_le_bytes()).collect()
}

/// The cosine of two packed vectors. None if they are of different models.
pub(crate) fn cosine(a: &[u8], b: &[u8]) -> Option<f32> {
    if a.len() != b.len() || a.is_empty() {
        return None;
    }
    let numbers = |bytes: &[u8]| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    Some(a.chunks_exact(4).zip(b.chunks_exact(4)).map(|(x, y)| numbers(x) * numbers(y)).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_both_lists_have_comes_first() {
        let fused = fuse(&[vec![1, 2, 3], vec![4, 2, 5]], 3);
        assert_eq!(fused.iter().map(|(row, _)| *row).collect::<Vec<_>>(), [2, 1, 4]);
    }

    #[test]
    fn equal_directions_have_cosine_one_and_lengths_do_not_matter() {
        let near = cosine(&pack(&[1.0, 2.0]), &pack(&[2.0, 4.0]));
        assert!(near.is_some_and(|c| (c - 1.0).abs() < 1e-6), "{near:?}");
        assert_eq!(cosine(&pack(&[1.0, 0.0]), &pack(&[0.0, 3.0])), Some(0.0));
        assert_eq!(cosine(&pack(&[1.0]), &pack(&[1.0, 0.0])), None);
    }
}
