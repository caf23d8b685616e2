-- The node of a cluster that owns a conversation, so that those of a dead one are found at once.
ALTER TABLE states ADD COLUMN owner_node bigint;
CREATE INDEX owned_by_nodes ON states (owner_node) WHERE owner_node IS NOT NULL;
