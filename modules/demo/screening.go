package demo

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"kontor/modules/duty/screening"
	"kontor/modules/duty/screening/lists"
	"kontor/server/access"
)

// watchList is a list of invented people and companies, in the form of OpenSanctions. Some have names like customers of the demo.
const watchList = `id,schema,name,aliases,birth_date,countries,addresses,identifiers,sanctions,phones,emails,dataset
demo-1,Company,Holzbau Bergmatt AG,Bergmatt Timber AG,,ch,,,Invented embargo,,,Watch list of the demo
demo-2,Person,Sylvie Deleze,Silvie Délèze,1961-04-17,fr,,,Invented embargo,,,Watch list of the demo
demo-3,Person,Regula Eggher,Regula Egger-Imboden,,de,,,Invented embargo,,,Watch list of the demo
demo-4,Person,Bartholomew Quill,,1949,gb,,,Invented embargo,,,Watch list of the demo
`

// loadWatchList loads the list. The server compares the customers with it in the background.
func (b *builder) loadWatchList(ctx context.Context) error {
	sum := sha256.Sum256([]byte(watchList))
	_, err := b.Screening.Load(access.With(ctx, &access.Caller{UserID: b.admin.id}), screening.File{
		Name: "Demo", Size: int64(len(watchList)), SHA256: hex.EncodeToString(sum[:]),
		Read: func(add func(lists.Entry) error) (lists.Info, error) {
			return lists.Read(strings.NewReader(watchList), int64(len(watchList)), add)
		},
	})
	return err
}
