package server

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"kontor/server/apierr"
	"kontor/server/endpoint"
)

// findRoute finds the row of a request. Addresses without a row may be files of the console.
func (s *Server) findRoute(r *call) error {
	if known, ok := r.fiber.Context().UserValue(foundKey{}).(found); ok {
		r.row, r.request.Params = known.row, known.params
		return nil
	}
	method, path := r.fiber.Method(), r.fiber.Request().URI().PathOriginal()
	var allowed []string
	if r.row, r.request.Params, allowed = s.lookUp(r.fiber.Context(), method, path, r.paramSpace[:0]); r.row != nil {
		return nil
	}
	if allowed != nil {
		r.fiber.Response().Header.Set(fiber.HeaderAllow, strings.Join(allowed, ", "))
		return apierr.MethodNotAllowed
	}
	if r.reads() && s.Fallback != nil && s.Fallback(r.fiber, string(path)) {
		return errAnswered
	}
	return apierr.NotFound
}

// found is the route of a request that [Server.expect] has looked up. It is a user value of the engine's context.
type found struct {
	row    *route
	params []string
}

type foundKey struct{}

// router finds the row of a request. Segments of a path match exactly as they are written, letter case included, so that
// another spelling of a path cannot bypass the rules of its row.
type router struct {
	root node
}

type node struct {
	fixed map[string]*node
	any   *node // {name}
	rows  []*route
}

// route is a row of the table as the server runs it.
type route struct {
	endpoint.Endpoint
	key          string
	index        int // in the table
	subject      int // position of the subject's id among the parameters; -1: none
	compressible bool
}

func newRouter(table []endpoint.Endpoint) (*router, error) {
	r := &router{}
	for i, e := range table {
		if err := r.add(&route{Endpoint: e, key: e.Key(), index: i, subject: e.SubjectPosition(), compressible: e.Compressible()}); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (r *router) add(row *route) error {
	at := &r.root
	for segment := range strings.SplitSeq(row.Path[1:], "/") {
		if strings.HasPrefix(segment, "{") {
			if at.any == nil {
				at.any = &node{}
			}
			at = at.any
			continue
		}
		if at.fixed == nil {
			at.fixed = map[string]*node{}
		}
		if at.fixed[segment] == nil {
			at.fixed[segment] = &node{}
		}
		at = at.fixed[segment]
	}
	if at.row(row.Method) != nil {
		return fmt.Errorf("endpoint %s matches the same paths as %s", row.key, at.row(row.Method).key)
	}
	at.rows = append(at.rows, row)
	return nil
}

func (n *node) row(method string) *route {
	for _, row := range n.rows {
		if row.Method == method {
			return row
		}
	}
	return nil
}

// match returns the row of a method and a path with the values of the path's {names}. For a path that has other methods, it
// returns these methods. values are appended to params.
func (r *router) match(method string, path []byte, params []string) (row *route, values []string, allowed []string) {
	at, values := r.root.walk(path, params[:0])
	if at == nil || len(at.rows) == 0 {
		return nil, nil, nil
	}
	if method == http.MethodHead {
		method = http.MethodGet
	}
	if row = at.row(method); row != nil {
		return row, values, nil
	}
	return nil, nil, at.methods()
}

// walk follows a path. A fixed segment wins over a {name}, without backtracking: paths under /v1/users/me never match
// /v1/users/{id}.
func (n *node) walk(path []byte, values []string) (*node, []string) {
	if len(path) == 0 || path[0] != '/' {
		return nil, nil
	}
	at := n
	for rest := path[1:]; ; {
		segment, tail, more := bytes.Cut(rest, []byte{'/'})
		next := at.fixed[string(segment)]
		if next == nil {
			if next = at.any; next == nil || len(segment) == 0 {
				return nil, nil
			}
			value := string(segment)
			if strings.Contains(value, "%") {
				var err error
				if value, err = url.PathUnescape(value); err != nil {
					return nil, nil
				}
			}
			values = append(values, value)
		}
		if at = next; !more {
			return at, values
		}
		rest = tail
	}
}

func (n *node) methods() []string {
	var methods []string
	for _, row := range n.rows {
		methods = append(methods, row.Method)
		if row.Method == http.MethodGet {
			methods = append(methods, http.MethodHead)
		}
	}
	slices.Sort(methods)
	return methods
}
