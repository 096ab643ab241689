-- +goose Up

-- Deliveries name the notification of their recipient instead of the event. The id of an event deletes it for all recipients, so that
-- no answer may have it.
UPDATE deliveries SET notification_id = (
	SELECT n.id FROM notices e
	JOIN notifications n ON n.user_id = deliveries.user_id AND n.deleted IN (TRUE, FALSE) AND n.created_at = e.created_at AND n.notice_id = e.id
	WHERE e.id = deliveries.notification_id)
WHERE notification_id IS NOT NULL;

-- +goose Down

UPDATE deliveries SET notification_id = (SELECT n.notice_id FROM notifications n WHERE n.id = deliveries.notification_id)
WHERE notification_id IS NOT NULL;
