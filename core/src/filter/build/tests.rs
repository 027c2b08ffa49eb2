use super::*;
use crate::kind::Tag;

/// The filter that is built of these hashes, in any order and possibly repeated.
pub(crate) fn built(request: Request, tag: Tag, hashes: &[u64]) -> Vec<u8> {
    let header = Header {
        kind: Kind::unnamed(tag),
        ..request.header(u64::MAX).expect("a possible request")
    };
    let mut hashes = hashes.to_vec();
    let distinct = sparse::sort_distinct(&mut hashes, 0);
    from_hashes(&header, &hashes[..distinct], u64::MAX).expect("a possible filter")
}
