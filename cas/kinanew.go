package cas

import (
	"bytes"

	bolt "go.etcd.io/bbolt"

	"wf/protocol"
)

// kinKnown reports whether what runs share is noted for all of them; a store that was restored, lost its index, or is of an older wf has it found anew.
func kinKnown(tx *bolt.Tx) bool {
	meta := tx.Bucket(bucketMeta)
	return meta != nil && meta.Get(keyKin) != nil && sub(tx, indexBases) != nil && sub(tx, indexDerived) != nil
}

// kinAnew finds out what the runs of a store share; see kin. A base that is noted stays. Where own parts begin is read from
// the first move of each head; only where a fork has no base are own parts read as a whole, each once, so that its cost is that of the
// events however many runs share them. A run that cannot be read is passed over: wf verify names it.
func (s *Store) kinAnew(tx *bolt.Tx) error {
	var heads []Head
	prefix := []byte(protocol.RunHead(""))
	c := tx.Bucket(bucketRefs).Cursor()
	for k, v := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, v = c.Next() {
		if h, err := parseHead(string(k), v); err == nil {
			heads = append(heads, h)
		}
	}
	bases, due := sub(tx, indexBases), map[string]kin{}
	wanted, owners := map[protocol.Link]bool{}, map[protocol.Link]string{}
	for _, h := range heads {
		from := EventRef{h.Seq, h.Link}
		if first, ok := firstMove(tx, h.Name); ok {
			from = first
		}
		k, ok := s.ownPart(tx, from, nil)
		if !ok {
			continue
		}
		if err := s.setDerived(tx, derivedOwn(protocol.RunOf(h.Name), k.own)); err != nil {
			return err
		}
		if k.fork() && bases.Get([]byte(h.Name)) == nil {
			due[h.Name], wanted[k.at.CID] = k, true
		}
	}
	if len(due) > 0 {
		for _, h := range heads {
			k, ok := s.ownPart(tx, EventRef{h.Seq, h.Link}, func(l protocol.Link) {
				if wanted[l] && owners[l] == "" {
					owners[l] = h.Name
				}
			})
			if had, waits := due[h.Name]; waits && (!ok || k.at != had.at) {
				delete(due, h.Name) // its head does not lead to its first move
			}
		}
	}
	for name, k := range due {
		var err error
		if base := owners[k.at.CID]; base != "" {
			err = setBase(tx, name, baseValue(base, k.at.Seq))
		} else {
			err = s.setDerived(tx, derivedDue(protocol.RunOf(name), k.at))
		}
		if err != nil {
			return err
		}
	}
	return tx.Bucket(bucketMeta).Put(keyKin, []byte{1})
}

// ownPart reads a journal back from an event to where its own part begins; the base of what it gives is not known. seen is called with each event; nil is not.
func (s *Store) ownPart(tx *bolt.Tx, from EventRef, seen func(protocol.Link)) (k kin, ok bool) {
	lk := s.newLookup(tx)
	for at := from; at.Seq > 0; {
		var e protocol.Entry
		if err := lk.event(&e, at.Seq, at.CID); err != nil {
			return k, false
		}
		if seen != nil {
			seen(at.CID)
		}
		before := EventRef{at.Seq - 1, e.Prev}
		switch {
		case at.Seq == 1:
			return kin{own: at}, true
		case e.Type == protocol.EvForked:
			return kin{own: at, at: before}, true
		}
		at = before
	}
	return k, false
}

// firstMove is the first move of a head, where its reflog begins with it.
func firstMove(tx *bolt.Tx, name string) (EventRef, bool) {
	b := tx.Bucket(bucketReflog)
	if b == nil {
		return EventRef{}, false
	}
	chunk := b.Get(append([]byte(name), 0, 0, 0, 0, 0))
	r := reader{b: chunk}
	x := r.rawLine(rawLine{})
	if r.bad || chunk[0]&lineFull == 0 || len(x.old) > 0 {
		return EventRef{}, false
	}
	line, err := x.line()
	return EventRef{line.Seq, line.New}, err == nil
}
