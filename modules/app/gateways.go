package app

import (
	"kontor/modules/reach/notifications"
)

// newNotifications builds the module notifications with the gateways of the settings.
func newNotifications(m *Modules) (*notifications.Service, error) {
	s, now := m.Settings.Notifications, m.DB.Clock().Now
	o := notifications.Options{
		BaseURL: m.Settings.Server.BaseURL, Heartbeat: s.SSE.Heartbeat, ConnectionsPerUser: s.SSE.ConnectionsPerUser,
		NoTrigger: !m.Settings.TriggerEnabled(), MaxAttempts: s.Queue.MaxAttempts, BasePause: s.Queue.Base, MaxPause: s.Queue.Max,
		Policy: m.Policy, TermsDue: m.termsDue(&m.held.notifications), Log: m.Log, CheckHolds: m.checkHolds,
	}
	if address := string(s.Email.SMTPURL); address != "" {
		gateway, err := notifications.NewSMTP(address, s.Email.From, now, nil)
		if err != nil {
			return nil, err
		}
		o.Email = gateway
	}
	if address := string(s.SMS.WebhookURL); address != "" {
		o.SMS = notifications.NewWebhook(address, string(s.SMS.Token), now)
	}
	return notifications.New(m.DB, m.Texts, o), nil
}
